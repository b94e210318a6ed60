#pragma once
#include <rnp/rnp.h>
#include <rnp/rnp_err.h>
