# SPDX-License-Identifier: Apache-2.0
# What U-Boot does after power-on: it starts the first slot of BOOT_ORDER that was marked good, or is on trial and has an
# attempt left. `devtype` and `devnum` are the SD card.
#
# The state of the slots is on the SD card twice, before the first partition, each with a checksum and a number. The copy
# with the higher number counts, the other one is written: a power loss leaves one of them. Linux writes them, too
# (/usr/libexec/approval-token/slots). A slot that was marked good is started without writing anything.

setexpr buffer ${loadaddr} + 0x2000000
setexpr kernel ${loadaddr} + 0x3000000
setexpr initrd ${loadaddr} + 0x9000000

setenv BOOT_SEQUENCE
setenv first_copy
setenv second_copy
setenv next_copy 800
${devtype} dev ${devnum}
if ${devtype} read ${buffer} 800 8 && env import -c ${buffer} 1000 BOOT_SEQUENCE BOOT_ORDER BOOT_A_GOOD BOOT_B_GOOD BOOT_A_LEFT BOOT_B_LEFT; then
  setenv first_copy ${BOOT_SEQUENCE}
  setenv next_copy 1000
fi
if ${devtype} read ${buffer} 1000 8 && env import -c ${buffer} 1000 BOOT_SEQUENCE; then
  setenv second_copy ${BOOT_SEQUENCE}
  if test -z "${first_copy}" || itest ${second_copy} -gt ${first_copy}; then
    env import -c ${buffer} 1000 BOOT_SEQUENCE BOOT_ORDER BOOT_A_GOOD BOOT_B_GOOD BOOT_A_LEFT BOOT_B_LEFT
    setenv next_copy 800
  else
    setenv BOOT_SEQUENCE ${first_copy}
  fi
fi
if test -z "${BOOT_SEQUENCE}"; then
  echo "The state of the slots cannot be read: both are on trial."
  setenv BOOT_SEQUENCE 0
  setenv BOOT_ORDER A B
  setenv BOOT_A_GOOD 0
  setenv BOOT_B_GOOD 0
  setenv BOOT_A_LEFT 3
  setenv BOOT_B_LEFT 3
fi

setenv save_state 'setexpr BOOT_SEQUENCE ${BOOT_SEQUENCE} + 1; env export -c -s 1000 ${buffer} BOOT_SEQUENCE BOOT_ORDER BOOT_A_GOOD BOOT_B_GOOD BOOT_A_LEFT BOOT_B_LEFT; ${devtype} write ${buffer} ${next_copy} 8; if test ${next_copy} = 800; then setenv next_copy 1000; else setenv next_copy 800; fi'
setenv save_left 'if test ${slot} = A; then setenv BOOT_A_LEFT ${left}; else setenv BOOT_B_LEFT ${left}; fi; run save_state'
# An option of the user, in a file of the FAT partition with one line: extra=…
setenv extra
setenv read_extra 'if load ${devtype} ${devnum}:1 ${buffer} kernel-options.txt; then env import -t ${buffer} ${filesize} extra; fi'
setenv load_slot 'load ${devtype} ${devnum}:${files} ${kernel} vmlinuz && load ${devtype} ${devnum}:${files} ${initrd} initrd.img && setenv initrd_size ${filesize} && load ${devtype} ${devnum}:${files} ${buffer} options.txt && env import -t ${buffer} ${filesize} options'

for candidate in ${BOOT_ORDER}; do
  # Not the variable of the loop, which one of the environment would hide.
  setenv slot ${candidate}
  if test ${slot} = A; then
    setenv good ${BOOT_A_GOOD}
    setenv left ${BOOT_A_LEFT}
    setenv root 02
    setenv files 5
  else
    setenv good ${BOOT_B_GOOD}
    setenv left ${BOOT_B_LEFT}
    setenv root 03
    setenv files 6
  fi
  if test "${good}" = 1 || test ${left} -gt 0; then
    setenv trial
    if test "${good}" != 1; then
      echo "Slot ${slot} is on trial: ${left} attempts are left."
      setenv trial approval_token.trial=1
      setexpr left ${left} - 1
      run save_left
    fi
    if run load_slot; then
      run read_extra
      setenv bootargs "root=PARTUUID=61746b6e-${root} rootfstype=squashfs ro rauc.slot=${slot} ${trial} ${options} ${extra}"
      echo "Starting slot ${slot}."
      booti ${kernel} ${initrd}:${initrd_size} ${fdt_addr}
    fi
    echo "Slot ${slot} cannot be started."
    if test "${good}" != 1; then
      setenv left 0
      run save_left
    fi
  fi
done

echo "No slot can be started: trying all of them again."
setenv BOOT_ORDER A B
setenv BOOT_A_LEFT 3
setenv BOOT_B_LEFT 3
run save_state
sleep 5
reset
