// SPDX-License-Identifier: Apache-2.0
// System libraries that are loaded at the first call of one of their functions. A process then keeps no memory for
// those that it does not use, nor for the libraries that they need.
#pragma once

#ifdef __ASSEMBLER__

// In a file functions.S: first
//   APPROVAL_LIBRARY "libusb-1.0.so.0", "libusb-1.0-0"
// with the file's name as the dynamic linker looks for it, and the Debian package that contains it; then, for each
// function that the product calls,
//   APPROVAL_FUNCTION libusb_init
// which defines a function with that name. Its first call loads the library if that is necessary, finds the function
// and continues in it with the same registers and stack; the later ones continue in it at once. What cannot be loaded
// or found ends the process with exit code 127, as the dynamic linker does at the start of a program.
.macro APPROVAL_LIBRARY file, package
  .pushsection .rodata
approval_library:
  .asciz "\file"
approval_package:
  .asciz "\package"
  .popsection
.endm

// A record of the function as `struct approval_function` describes it, its address, and its code. The names are not
// visible to other libraries: these find each other's functions as if the program had none with the same name. A test
// may define a function of the same name, which takes its place.
.macro APPROVAL_FUNCTION function
  .pushsection .bss
  .balign 8
.Laddress_\function:
  .zero 8
  .popsection
  .pushsection .rodata
  .balign 4
.Lrecord_\function:
  .long .Laddress_\function - .
  .long approval_library - .
  .long approval_package - .
  .asciz "\function"
  .popsection
  .text
  .balign 16
  .weak \function
  .hidden \function
  .type \function, %function
\function:
  .cfi_startproc
#if defined(__x86_64__)
  movq .Laddress_\function(%rip), %r11
  testq %r11, %r11
  je 1f
  jmp *%r11
1:
  leaq .Lrecord_\function(%rip), %r11
  jmp approval_delay_load
#elif defined(__aarch64__)
  adrp x16, .Laddress_\function
  add x16, x16, :lo12:.Laddress_\function
  ldar x16, [x16]
  cbz x16, 1f
  br x16
1:
  adrp x16, .Lrecord_\function
  add x16, x16, :lo12:.Lrecord_\function
  b approval_delay_load
#else
#error "Only for amd64 and arm64"
#endif
  .cfi_endproc
  .size \function, . - \function
.endm

// Nothing of a file needs an executable stack.
.section .note.GNU-stack, "", %progbits
.text

#endif
