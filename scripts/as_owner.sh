#!/bin/sh
# Runs a command as the owner of this folder, where root calls for another's: as_owner.sh COMMAND...
set -eu
owner=$(stat -c %u .) group=$(stat -c %g .)
if [ "$(id -u)" = 0 ] && [ "$owner" != 0 ]; then
  exec setpriv --reuid "$owner" --regid "$group" --clear-groups "$@"
fi
exec "$@"
