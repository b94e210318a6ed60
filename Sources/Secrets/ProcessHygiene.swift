import Glibc

/// Takes away what would let a secret leave the process by accident: core dumps and debuggers of the same user.
/// Call once at start. Idempotent.
public func hardenProcess() {
  var none = rlimit(rlim_cur: 0, rlim_max: 0)
  setrlimit(__rlimit_resource_t(4) /* RLIMIT_CORE */, &none)
  prctl(Int32(4) /* PR_SET_DUMPABLE */, 0, 0, 0, 0)
}
