#!/bin/sh
# A folder of images, one folder a class: from files to predictions with names; the same bits with random changes.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
# PNG files of 8 x 8 points with stripes, lying or standing; files need neither numpy nor an image library.
if ! has_python; then exit 77; fi
python3 - "$work" <<'END'
import os, struct, sys, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(path, point):
    rows = b''.join(b'\0' + bytes(point(x, y) for x in range(8)) for y in range(8))
    with open(path, 'wb') as file:
        file.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 8, 8, 8, 0, 0, 0, 0)) +
                   chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))
for kind in ('lying', 'standing'):
    os.makedirs(sys.argv[1] + '/stripes/' + kind)
    for n in range(20):
        png('%s/stripes/%s/%02d.png' % (sys.argv[1], kind, n), lambda x, y: 40 + n if (
            (y if kind == 'lying' else x) + n) % 3 else 250 - n)
END
file stripes.ini <<'END'
[Model]
batch_size = 8
epochs = 12
[Optimizer : adam]
learning_rate = 0.01
[Dataset : images]
inputs = stripes
validation_split = 0.2
flip = both
shift = 1
cutout = 2
crop = 0.8
[in : input]
input_shape = 1:8:8
[conv : conv2d]
filters = 6
kernel_size = 3
[act : activation]
activation = relu
[flat : flatten]
[out : fully_connected]
unit = 2
[loss : cross_entropy]
END
model=$work/stripes.ini
"$REMAT" doctor >"$work/doctor"
if ! grep -q 'libpng *there' "$work/doctor"; then
  expect 2 train "$model" -q
  err "libpng"
  exit 77
fi
expect 0 train "$model" --save "$work/w.st" -q
expect 0 train "$model" --steps 17 --save "$work/half.st" -q
expect 0 train "$model" --resume "$work/half.st" --save "$work/resumed.st" -q
cmp "$work/w.st" "$work/resumed.st" || complain "a resumed training draws other changes"
expect 0 train "$model" --strategy full -j 1 --save "$work/full.st" -q
cmp "$work/w.st" "$work/full.st" || complain "another plan gives other weights"
expect 0 train "$model" --set dataset.cutout=0 --save "$work/other.st" -q
! cmp -s "$work/w.st" "$work/other.st" || complain "cutout changes nothing"
expect 0 eval "$model" -w "$work/w.st"
out "over 8 samples"
out "standing"
expect 0 predict "$model" -w "$work/w.st" --data "$work/stripes/lying" --output -
head -n 1 "$work/out" | grep -qx 'file,prediction,lying,standing' || complain "$(head -n 1 "$work/out")"
[ "$(grep -c 'stripes/lying/[0-9]*.png,lying,' "$work/out")" -ge 18 ] || complain "predicted: $(cut -c 1-80 "$work/out")"
# The model of the manual is whole, and reads such a folder.
sed -n '/^## Your own images/,/^## Your own model/s/^    \(\[.*\|[a-z_]* = .*\)$/\1/p' docs/get-started.md >"$work/photos.ini"
expect 0 train "$work/photos.ini" --set dataset.inputs=stripes --batch 4 --steps 1 --save "$work/photos.st" -q
expect 0 predict "$work/photos.ini" -w "$work/photos.st" --data "$work/stripes/lying" --output "$work/kinds.csv"
[ "$(wc -l <"$work/kinds.csv")" = 21 ] || complain "$(head -n 3 "$work/kinds.csv")"
printf 'not an image' >"$work/stripes/lying/20.png"
expect 3 train "$model" -q
err "20.png: neither PNG nor JPEG"
# Logits in several rows: what is missing is a flatten layer.
sed '/flatten/d' "$model" >"$work/rows.ini"
expect 2 train "$work/rows.ini" --steps 1
err "a flatten layer before the last fully_connected"
finish
