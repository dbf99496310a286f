#!/bin/sh
# Where PyTorch is installed: it trains from the same weights on the same batches, here and now, and the losses agree.
# This also shows that others can read saved weights, and that --weights starts from them. Elsewhere the recorded
# losses of test_reference_losses must do.
. tests/cli/support/expect.sh
python=${PYTHON:-/usr/bin/python3}

if ! "$python" -c 'import numpy, torch' 2>/dev/null; then
  echo "skipped: PyTorch is not installed (apt install python3-torch)"
  exit 77
fi
agree() { # model, options of torch_losses.py ...
  OMP_NUM_THREADS=1 "$python" tests/reference/torch_losses.py "$@" --remat "$REMAT" --threads 1 --compare \
    >"$work/out" 2>&1 || complain "torch_losses.py $*: $(tail -25 "$work/out")"
  out "at most"
}
agree tests/reference/many_layers.ini --options "--strategy full --threads 1"
agree tests/reference/image_layers.ini --options "--strategy full --threads 1"
[ "$REMAT_SANITIZE" = ON ] || agree examples/models/convnet.ini --steps 6 --options "--threads 1"
finish
