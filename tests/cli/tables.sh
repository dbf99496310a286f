#!/bin/sh
# A table with words and gaps: from the file to weights, with the same bits however it is trained.
. tests/cli/support/expect.sh
. tests/cli/support/models.sh
fruit_table
model=$work/fruit.ini

expect 0 train "$model" --save "$work/w.st" -q
err "6 missing values are replaced by the mean of the column"
! grep -q "missing word" "$work/err" || complain "there are no words to miss"
# Resumed, and under another plan, the bits are the same.
expect 0 train "$model" --steps 7 --save "$work/half.st" -q
expect 0 train "$model" --resume "$work/half.st" --save "$work/resumed.st" -q
cmp "$work/w.st" "$work/resumed.st" || complain "a resumed training has other weights"
expect 0 train "$model" --strategy full --threads 1 --save "$work/full.st" -q
cmp "$work/w.st" "$work/full.st" || complain "another plan gives other weights"
# The split belongs to the weights: another seed of the model does not move it.
expect 0 eval "$model" -w "$work/w.st" --json
cp "$work/out" "$work/eval"
sed 's/^seed.*/seed = 8/' "$model" >"$work/other_seed.ini"
expect 0 eval "$work/other_seed.ini" -w "$work/w.st" --json
cmp "$work/out" "$work/eval" || complain "another seed evaluates other samples"

# New rows, without labels and with the columns in another order.
expect 0 predict "$model" -w "$work/w.st" --data "$work/fruit_new.csv" --output "$work/kinds.csv"
silent out
cut -d , -f 1-2 "$work/kinds.csv" >"$work/names"
printf 'row,prediction\n1,apple\n2,cherry\n3,melon\n4,apple\n5,cherry\n' | cmp - "$work/names" || complain "predicted: $(cat "$work/kinds.csv")"
head -n 1 "$work/kinds.csv" | grep -qx 'row,prediction,apple,cherry,melon' || complain "$(head -n 1 "$work/kinds.csv")"
awk -F , 'NR > 1 { sum = $3 + $4 + $5; if (sum < 0.99999 || sum > 1.00001) exit 1 }' "$work/kinds.csv" ||
  complain "probabilities do not add up to 1: $(cat "$work/kinds.csv")"
cp "$work/kinds.csv" "$work/whole"
expect 0 predict "$model" -w "$work/w.st" --data "$work/fruit_new.csv" --output - --batch 2 --set model.seed=77
cmp "$work/out" "$work/whole" || complain "another batch size predicts something else"
expect 0 predict "$model" -w "$work/w.st" --data "$work/fruit_new.csv" --classes
printf 'apple\ncherry\nmelon\napple\ncherry\n' | cmp - "$work/out" || complain "--classes: $(cat "$work/out")"
expect 0 predict "$model" -w "$work/w.st" --data "$work/fruit_new.csv" --output - --set dataset.missing=drop
[ "$(cut -d , -f 1 "$work/out" | tr '\n' ' ')" = "row 1 2 3 5 " ] || complain "rows that are left out: $(cat "$work/out")"
err "1 of 5 rows has missing values and is left out"
expect 0 eval "$model" -w "$work/w.st" --data "$work/fruit.csv"
out "melon"
sed 's/melon/lemon/' "$work/fruit.csv" >"$work/lemon.csv"
expect 3 eval "$model" -w "$work/w.st" --data "$work/lemon.csv"
err "lemon.csv:42: column 2 (fruit): 'lemon' is not a class; did you mean 'melon'?"
expect 2 predict "$model" -w "$work/w.st" --classes --output "$work/x"

sed '/missing/d' "$model" >"$work/strict.ini"
expect 3 train "$work/strict.ini" --steps 1 -q
err "fruit.csv:11: column 3 (weight): '' is a missing value; missing = mean, zero or drop"
sed 's/mean/drop/' "$model" >"$work/drop.ini"
expect 0 train "$work/drop.ini" --steps 1 -q
err "6 of 60 rows have missing values and are left out"
sed 's/target = fruit/target = friut/' "$model" >"$work/typo.ini"
expect 3 train "$work/typo.ini" --steps 1 -q
err "there is no column 'friut'; did you mean 'fruit'?"
sed 's/normalize/normalise/' "$model" >"$work/key.ini"
expect 3 train "$work/key.ini" --steps 1 -q
err "did you mean normalize?"
sed 's/unit = 3/unit = 2/' "$model" >"$work/two.ini"
expect 3 train "$work/two.ini" --steps 1 -q
err "more than 2 different labels"
# Words as labels of a loss that is not over classes.
sed 's/^\[loss.*/[loss : binary_cross_entropy]/; s/^unit = 3/unit = 1/' "$model" >"$work/words.ini"
expect 3 train "$work/words.ini" --steps 1
err "words are labels for a cross_entropy, with one unit for each of them"

# Too few inputs for the words of a column: the message says how many there are. A quote that is not closed is found.
printf 'colour,kind\nred,a\ngreen,b\nblue,a\nred,b\n' >"$work/colours.csv"
printf '[Model]\nbatch_size = 2\n[Dataset : csv]\ninputs = colours.csv\nwords = onehot\n[in : input]\ninput_shape = 1:1:1\n' >"$work/colours.ini"
printf '[fc : fully_connected]\nunit = 2\n[loss : cross_entropy]\n' >>"$work/colours.ini"
expect 3 train "$work/colours.ini" -q
err 'set input_shape = 3'
sed -i 's/^blue/"blue/' "$work/colours.csv"
expect 3 train "$work/colours.ini" -q
err 'colours.csv:4: cell 1 begins with a quote that is not closed in this line'
finish
