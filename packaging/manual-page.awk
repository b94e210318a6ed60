# SPDX-License-Identifier: Apache-2.0
# Makes a manual page of swift-argument-parser one that man-db can index: the name of the page of a subcommand is one word,
# `approval-token-board`, while its synopsis has `approval-token board`. An alias is not a name.
/^\.Sh / { section = $2; names = 0 }
/^\.(Dt|Xr) / { gsub(/\./, "-", $2) }
section == "NAME" && /^\.Nm / {
  if (names++) next
  sub(/^\.Nm /, "")
  sub(/ ,$/, "")
  gsub(/"/, "")
  command = $0
  gsub(/ /, "-")
  print ".Nm " $0
  next
}
section == "NAME" && /^\.Nd / { gsub(/^\.Nd "|"$/, ""); print ".Nd " $0; next }
section == "SYNOPSIS" && /^\.Nm$/ { print ".Nm \"" command "\""; next }
/^$/ { print ".Pp"; next }
{ print }
