#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Creates in the directory $1 an authority, and server certificates that are valid or have one defect each. All leaves
# share one key and so one pin. The dates are fixed; the rows of the tests are correct until 2090.
set -eu
cd "$1"

cat > ca.conf <<END
[ca]
default_ca = authority
[authority]
database = index
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = anything
[anything]
commonName = supplied
END
: > index
printf 'basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n' > here.ext
printf 'basicConstraints=CA:FALSE\nsubjectAltName=DNS:elsewhere.example\n' > elsewhere.ext
printf 'basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n' > ca.ext

for key in root issuer leaf other; do openssl ecparam -name prime256v1 -genkey -noout -out $key.key; done
for key in leaf other; do
  openssl pkey -in $key.key -pubout -outform der | openssl dgst -sha256 -binary | base64 > $key.pin
done

# issue NAME KEY EXTENSIONS FROM UNTIL SIGNER; the subject is named after its key, and SIGNER may be "itself".
issue() {
  openssl req -new -config ca.conf -key "$2.key" -subj "/CN=$2" -out request.csr
  if [ "$6" = itself ]; then signer="-selfsign -keyfile $2.key"; else signer="-cert $6.pem -keyfile $6.key"; fi
  # shellcheck disable=SC2086
  openssl ca -batch -notext -config ca.conf $signer -extfile "$3.ext" -startdate "$4" -enddate "$5" \
    -in request.csr -out "$1.pem"
}
long_ago=20000101000000Z
ago=20210101000000Z
ahead=20900101000000Z
far_ahead=20991231000000Z

issue root root ca $long_ago $far_ahead itself
issue expired-root root ca $long_ago $ago itself
issue issuer issuer ca $long_ago $far_ahead root
issue expired-issuer issuer ca $long_ago $ago root

issue good leaf here $long_ago $far_ahead root
issue expired leaf here $long_ago $ago root
issue not-yet-valid leaf here $ahead $far_ahead root
issue wrong-name leaf elsewhere $long_ago $far_ahead root
issue self-signed leaf here $long_ago $far_ahead itself
issue expired-self-signed leaf here $long_ago $ago itself
issue under-issuer leaf here $long_ago $far_ahead issuer

# Chains in the order of a TLS handshake, the leaf first.
cat under-issuer.pem issuer.pem > chain.pem
cat under-issuer.pem expired-issuer.pem > chain-with-expired-issuer.pem
cat good.pem root.pem > chain-with-root.pem
cat good.pem expired-root.pem > chain-with-expired-root.pem
