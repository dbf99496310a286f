"""Trains tokenizers with the library `tokenizers` for Python and compares Remat with it on random and multilingual strings:

    REMAT_LIBRARY=build/libremat.so python3 tests/data/tokenizers/compare_tokenizers.py FOLDER [STRINGS]

Byte-level BPE as GPT-2, Llama 3 and Qwen 2 have it, and BPE of characters as sentencepiece makes it. Each is trained on this project's
pages and on the strings, and compared on STRINGS strings (100,000): ids with special tokens, and the text that they decode to. FOLDER
gets NAME.json and NAME.txt of the tokenizers whose answers to strings.jsonl are recorded here, in the form of make_tokenizers.js;
test_tokenizer compares with them."""

import ctypes
import json
import os
import random
import sys
import time

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "../../..")
RECORDED = ["trained_bytes", "trained_pieces"]

# ---- strings ----

RANGES = [(0x20, 0x7E), (0x20, 0x7E), (0x09, 0x0D), (0x01, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x300, 0x36F), (0x370, 0x3FF),
          (0x400, 0x4FF), (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xB80, 0xBFF), (0xE00, 0xE7F),
          (0x1000, 0x109F), (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x1200, 0x137F), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2150, 0x218B),
          (0x2581, 0x2581), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFF00, 0xFFEF),
          (0x1D400, 0x1D7FF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F6FF), (0x20000, 0x2A6DF), (0x1, 0x10FFFF)]
SENTENCES = [
    "All human beings are born free and equal in dignity and rights.", "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "Todos los seres humanos nacen libres e iguales en dignidad y derechos.", "Wszyscy ludzie rodzą się wolni i równi.",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng.", "Tüm insanlar özgür, onur ve haklar bakımından eşit doğar.",
    "Все люди рождаются свободными и равными в своём достоинстве и правах.", "Всі люди народжуються вільними і рівними.",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι.", "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.", "تمام انسانها آزاد به دنیا می‌آیند.", "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।",
    "মানুষ স্বাধীনভাবে জন্মগ্রহণ করে।", "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.", "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกัน",
    "人人生而自由，在尊严和权利上一律平等。", "すべての人間は、生まれながらにして自由である。", "모든 인간은 태어날 때부터 자유롭다.", "ყველა ადამიანი იბადება თავისუფალი.",
    "ሰው ሁሉ ነጻ ሆኖ ተፈጥሯል።", "Բոլոր մարդիկ ծնվում են ազատ։", "for (int i = 0; i < 10; i++) {\n\tsum += a[i];\r\n}\n\n"]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


PHRASES = [json.loads(line)["text"] for line in read("tests/data/tokenizers/strings.jsonl").split("\n") if line]
PAGES = [read(name) for name in ("README.md", "docs/concepts.md", "docs/memory-model.md", "docs/formats.md", "src/base/json_reader.c")]
WORDS = sorted({word for page in PAGES for word in page.split()} | {word for text in SENTENCES for word in text.split()})


def random_letters(draw):
    first, last = draw.choice(RANGES)
    codes = (draw.randint(first, last) for _ in range(draw.randint(1, 6)))
    return "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)


def random_string(draw):
    parts = []
    for _ in range(draw.randint(1, 12)):
        kind = draw.randrange(10)
        if kind < 2:
            parts.append(draw.choice(PHRASES[2:]))
        elif kind < 3:
            parts.append(" " * draw.randint(1, 4))
        elif kind < 5:
            parts.append(draw.choice(WORDS) + " ")
        elif kind < 7:
            text = draw.choice(SENTENCES)
            at = draw.randrange(len(text))
            parts.append(text[at:at + draw.randint(1, 20)])
        else:
            parts.append(random_letters(draw))
    return "".join(parts)


# ---- tokenizers ----

CUTS = {"llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"}
CUTS["qwen2"] = CUTS["llama3"].replace("{1,3}", "")


def train_bytes(corpus, size, cut=None, normalizer=None, special=("<|endoftext|>",)):
    made = tokenizers.Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut is None)
    if normalizer:
        made.normalizer = normalizer
    made.pre_tokenizer = byte_level if cut is None else pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(cut), behavior="isolated"), byte_level])
    made.decoder = decoders.ByteLevel()
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    made.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, special_tokens=list(special), show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return made


def train_pieces(corpus, size, metaspace):
    """As Llama 2's: blanks become U+2581, and characters that no token has become bytes."""
    names = ["<unk>", "<s>", "</s>"]
    all_bytes = [f"<0x{i:02X}>" for i in range(256)]
    made = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if metaspace:
        made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    else:
        made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    # Whole lines would become tokens without something that cuts them; only the training has it.
    cutting = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    cutting.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    cutting.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=size, special_tokens=names + all_bytes, show_progress=False,
                                                            limit_alphabet=200))
    trained, whole = json.loads(cutting.to_str()), json.loads(made.to_str())
    whole["model"] = trained["model"]
    whole["added_tokens"] = [token for token in trained["added_tokens"] if token["content"] in names]
    made = tokenizers.Tokenizer.from_str(json.dumps(whole))
    made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return made


def train_all():
    corpus = [line for page in PAGES for line in page.splitlines()] + SENTENCES * 8 + PHRASES
    return {
        "trained_bytes": train_bytes(corpus, 600, CUTS["qwen2"], normalizers.NFC(), ("<|endoftext|>", "<|im_start|>", "<|im_end|>")),
        "trained_pieces": train_pieces(corpus, 900, False),
        "large_gpt2": train_bytes(corpus, 6000),
        "large_llama3": train_bytes(corpus, 6000, CUTS["llama3"], None, ("<|begin_of_text|>", "<|eot_id|>")),
        "large_pieces": train_pieces(corpus, 6000, False),
        "large_metaspace": train_pieces(corpus, 6000, True),
    }


# ---- Remat ----

class Remat:
    def __init__(self, library, path):
        self.library, self.context, self.tokenizer = ctypes.CDLL(library), ctypes.c_void_p(), ctypes.c_void_p()
        self.library.remat_context_message.restype = ctypes.c_char_p
        assert self.library.remat_context_create_sized(None, ctypes.c_size_t(0), ctypes.byref(self.context)) == 0
        self.check(self.library.remat_tokenizer_load(self.context, path.encode(), ctypes.byref(self.tokenizer)))

    def check(self, status):
        if status != 0:
            raise SystemExit(self.library.remat_context_message(self.context).decode())

    def encode(self, text):
        ids, count, data = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), text.encode()
        self.check(self.library.remat_tokenizer_encode(self.tokenizer, data, ctypes.c_size_t(len(data)), 1, ctypes.byref(ids),
                                                       ctypes.byref(count)))
        return ids[:count.value]

    def decode(self, ids):
        text, size = ctypes.c_char_p(), ctypes.c_size_t()
        self.check(self.library.remat_tokenizer_decode(self.tokenizer, (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t(len(ids)), 0,
                                                       ctypes.byref(text), ctypes.byref(size)))
        return ctypes.string_at(text, size.value).decode(errors="surrogateescape")


def compare(name, judge, path, strings):
    ours, began, different, count = Remat(os.environ["REMAT_LIBRARY"], path), time.time(), 0, 0
    answers = judge.encode_batch(strings)
    texts = judge.decode_batch([answer.ids for answer in answers], skip_special_tokens=True)
    for text, answer, decoded in zip(strings, answers, texts):
        ids = ours.encode(text)
        count += len(ids)
        if ids != answer.ids or ours.decode(answer.ids) != decoded:
            different += 1
            if different <= 3:
                print("  ", json.dumps(text), ids, answer.ids, json.dumps(ours.decode(answer.ids)), json.dumps(decoded))
    print(f"{name}: {judge.get_vocab_size()} tokens in the vocabulary, {len(strings)} strings, {count} tokens, {different} strings "
          f"differ, {time.time() - began:.1f} s", flush=True)
    return different


def main():
    folder, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100000
    os.makedirs(folder, exist_ok=True)
    print("tokenizers", tokenizers.__version__)
    draw = random.Random(12345)
    strings = PHRASES + [random_string(draw) for _ in range(count - len(PHRASES))]
    different = 0
    for name, judge in train_all().items():
        path = os.path.join(folder, name + ".json")
        judge.save(path, pretty=False)
        different += compare(name, judge, path, strings)
        if name not in RECORDED:
            os.remove(path)
            continue
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as file:
            for answer in judge.encode_batch(PHRASES):
                text = json.dumps(judge.decode(answer.ids, skip_special_tokens=True), ensure_ascii=False)
                file.write(" ".join(map(str, answer.ids)) + "\n" + text + "\n")
    raise SystemExit(1 if different else 0)


main()
