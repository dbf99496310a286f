// Makes the tokenizers and references of this folder with the library `tokenizers`, from npm:
//   npm install tokenizers@0.23.2 && NODE_PATH=node_modules node make_tokenizers.js FOLDER
// Writes FOLDER/NAME.json for every family, FOLDER/strings.jsonl, and FOLDER/NAME.txt: for every string a line with its ids,
// and one with what they decode to without special tokens. With a number of strings behind FOLDER, trains nothing, and
// writes that many strings and the answers of the tokenizers of this folder. So 100,000 strings are compared:
//   node make_tokenizers.js FOLDER 100000 && TOKENIZER_ANSWERS=FOLDER build-check/tests/test_tokenizer
'use strict'
const fs = require('fs')
const path = require('path')
const os = require('os')
const { Tokenizer } = require('tokenizers')

const folder = process.argv[2]
const count = Number(process.argv[3] || 0)
const MERGES = 400

// ---- strings ----

let state = 12345
function uniform() { state = (state * 16807) % 2147483647; return (state - 1) / 2147483646 }
function below(n) { return Math.floor(uniform() * n) }
function choose(list) { return list[below(list.length)] }

const RANGES = [[0x20, 0x7e], [0x20, 0x7e], [0x20, 0x7e], [0x09, 0x0d], [0x01, 0x1f], [0x7f, 0xff], [0x100, 0x24f], [0x300, 0x36f], [0x370, 0x3ff],
  [0x400, 0x4ff], [0x590, 0x5ff], [0x600, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f], [0x1100, 0x11ff], [0x1e00, 0x1eff], [0x2000, 0x206f],
  [0x2150, 0x218b], [0x2460, 0x24ff], [0x2581, 0x2581], [0x3000, 0x30ff], [0x4e00, 0x9fff], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe00, 0xfe0f],
  [0xff00, 0xffef], [0x10400, 0x1044f], [0x1d400, 0x1d7ff], [0x1f1e6, 0x1f1ff], [0x1f300, 0x1f6ff], [0x20000, 0x2a6df], [0x2f800, 0x2fa1d],
  [0xe000, 0xe0ff], [0x0, 0x10ffff]]
const PHRASES = ["don't", "DON'T", "we'Ll", "I'M", "they'Re", "'\u017f", " 's", "hello world", "  two  blanks ", "\t\ttabs", "\n\n", "\r\n", " \n ", "   ",
  "1234567", "3.14", "x=1;", "int main(void)", "{\n    return 0;\n}", "naïve café", "Übergröße", "привет мир", "ёлка", "שלום עולם", "مرحبا بالعالم",
  "नमस्ते दुनिया", "สวัสดีชาวโลก", "你好，世界", "こんにちは世界", "안녕하세요 세계", "e\u0301", "a\u0323\u0302", "a\u0302\u0323", "q\u0307\u0323", "\u1112\u1161\u11ab",
  "\ud55c\u11ab", "\u212b", "\u2126", "\ufb01", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "\u200d", "\u00a0", "\u2028", "\u3000", "▁", "▁▁x", "<0x0A>", "<0x41>", "<s>", "</s>",
  "<unk>", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<|im_", "[INST]", "[/INST]", "<word>", "<strip>", " <strip> ",
  "a<word>b", "_<word>", " <word>.", "<norm>", "é<norm>", "<nörm>", "<no\u0308rm>", "www.example.com/a?b=c&d", "!!!???", "...", "---", "==", "$%^&*()", "ﬀ", "²³¹", "½", "Ⅷ",
  "ｆｕｌｌ", "１２３", "\ufffd", "\ufeff"]
function string() {
  let text = ''
  for (let parts = 1 + below(12); parts > 0; parts--) {
    const kind = below(10)
    if (kind < 4) text += choose(PHRASES)
    else if (kind < 5) text += ' '.repeat(1 + below(4))
    else if (kind < 7) text += choose(WORDS) + ' '
    else {
      const [first, last] = choose(RANGES)
      for (let length = 1 + below(6); length > 0; length--) {
        const code = first + below(last - first + 1)
        if (code > 0 && (code < 0xd800 || code > 0xdfff)) text += String.fromCodePoint(code)
      }
    }
  }
  return text
}

// ---- what they are trained on: this project's pages, and the phrases ----

const root = path.join(__dirname, '../../..')
const pages = ['README.md', 'docs/concepts.md', 'docs/memory-model.md', 'src/base/json_reader.c', 'docs/formats.md']
  .map(name => fs.readFileSync(path.join(root, name), 'utf8')).join('\n')
const WORDS = [...new Set(pages.match(/\S+/g))]
const corpus = pages + '\n' + Array.from({ length: 400 }, () => choose(PHRASES) + ' ' + choose(PHRASES)).join('\n')

// ---- families ----

function byteLetters() {
  const letters = []
  for (let byte = 0, next = 0x100; byte < 256; byte++) {
    const visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174
    letters.push(String.fromCodePoint(visible ? byte : next++))
  }
  return letters
}
const added = (id, content, more) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more })
const bpe = (vocab, merges, more) => ({ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
  fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab, merges, ...more })
const whole = parts => ({ version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null,
  decoder: null, ...parts })
const byteLevel = (prefix, regex) => ({ type: 'ByteLevel', add_prefix_space: prefix, trim_offsets: true, use_regex: regex })
const split = pattern => ({ type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false })
const template = (name, id) => ({ type: 'TemplateProcessing', single: [{ SpecialToken: { id: name, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }], special_tokens: { [name]: { id: name, ids: [id], tokens: [name] } } })

// The merges that the library's trainer finds: it makes 30,000 tokens, of which the first are kept.
function train(preTokenizer, normalizer) {
  const file = path.join(os.tmpdir(), 'corpus-' + process.pid + '.txt')
  fs.writeFileSync(file, corpus)
  const tokenizer = Tokenizer.fromString(JSON.stringify(whole({ pre_tokenizer: preTokenizer, normalizer, model: bpe({}, []) })))
  tokenizer.train([file])
  tokenizer.save(file + '.json')
  const { model } = JSON.parse(fs.readFileSync(file + '.json', 'utf8'))
  fs.unlinkSync(file)
  fs.unlinkSync(file + '.json')
  return { characters: Object.keys(model.vocab).filter(token => [...token].length === 1), merges: model.merges.slice(0, MERGES) }
}
function number(tokens) {
  const vocab = {}
  for (const token of tokens) if (!(token in vocab)) vocab[token] = Object.keys(vocab).length
  return vocab
}
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
const LLAMA3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
const QWEN2 = LLAMA3.replace('{1,3}', '')
const TEKKEN = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

function families() {
  const made = {}
  const bytes = (preTokenizer, normalizer) => {
    const { merges } = train(preTokenizer, normalizer)
    return { merges, tokens: [...byteLetters().sort(), ...merges.map(pair => pair.join(''))] }
  }
  {
    const { merges, tokens } = bytes(byteLevel(false, true), null)
    const vocab = number([...tokens, '<|endoftext|>'])
    made.gpt2 = whole({ added_tokens: [added(vocab['<|endoftext|>'], '<|endoftext|>')], pre_tokenizer: byteLevel(false, true), post_processor: byteLevel(true, true),
      decoder: byteLevel(true, true), model: bpe(vocab, merges.map(pair => pair.join(' '))) })
      // The same with a blank in front, and with tokens that take blanks, or stand alone.
    made.gpt2_prefix = whole({ ...made.gpt2, pre_tokenizer: byteLevel(true, true), added_tokens: [...made.gpt2.added_tokens,
      added(Object.keys(vocab).length, '<word>', { single_word: true, special: false }),
      added(Object.keys(vocab).length + 1, '<strip>', { lstrip: true, rstrip: true }),
      added(Object.keys(vocab).length + 2, '<norm>', { normalized: true, special: false })] })
  }
  {
    const pre = { type: 'Sequence', pretokenizers: [split(LLAMA3), byteLevel(false, false)] }
    const { merges, tokens } = bytes(pre, null)
    const vocab = number([...tokens, 'Ġunreachable', 'Ġthese'])
    const first = Object.keys(vocab).length
    made.llama3 = whole({ added_tokens: ['<|begin_of_text|>', '<|eot_id|>', '<|start_header_id|>', '<|end_header_id|>'].map((name, i) => added(first + i, name)), pre_tokenizer: pre,
      post_processor: { type: 'Sequence', processors: [byteLevel(true, true), template('<|begin_of_text|>', first)] }, decoder: byteLevel(true, true),
      model: bpe(vocab, merges, { ignore_merges: true }) })
  }
  {
    const pre = { type: 'Sequence', pretokenizers: [split(QWEN2), byteLevel(false, false)] }
    const { merges, tokens } = bytes(pre, { type: 'NFC' })
    const vocab = number(tokens)
    const first = Object.keys(vocab).length
    made.qwen2 = whole({ added_tokens: [...['<|endoftext|>', '<|im_start|>', '<|im_end|>'].map((name, i) => added(first + i, name)),
      added(first + 3, '<no\u0308rm>', { normalized: true, special: false })],
      normalizer: { type: 'NFC' }, pre_tokenizer: pre, post_processor: byteLevel(false, false), decoder: byteLevel(false, false),
      model: bpe(vocab, merges.map(pair => pair.join(' ')), { continuing_subword_prefix: '', end_of_word_suffix: '' }) })
  }
  {
    const pre = { type: 'Sequence', pretokenizers: [split(TEKKEN), byteLevel(false, false)] }
    const { merges, tokens } = bytes(pre, null)
    const names = ['<unk>', '<s>', '</s>', '[INST]', '[/INST]']
    const vocab = number([...names, ...tokens])
    made.tekken = whole({ added_tokens: names.map((name, i) => added(i, name)), pre_tokenizer: pre, post_processor: template('<s>', 1), decoder: byteLevel(true, true),
      model: bpe(vocab, merges, { ignore_merges: true }) })
  }
  {
    const metaspace = { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true }
    const { merges, characters } = train(metaspace, null)
    const hex = Array.from({ length: 256 }, (_, i) => '<0x' + i.toString(16).toUpperCase().padStart(2, '0') + '>')
    const vocab = number(['<unk>', '<s>', '</s>', ...hex, ...merges.map(pair => pair.join('')), ...characters.slice(0, 150), '▁'])
    const kept = merges.filter(pair => pair[0] in vocab && pair[1] in vocab)
    const tokens = ['<unk>', '<s>', '</s>'].map((name, i) => added(i, name))
    const model = bpe(vocab, kept.map(pair => pair.join(' ')), { unk_token: '<unk>', fuse_unk: true, byte_fallback: true })
    const decoder = { type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '▁' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' },
      { type: 'Strip', content: ' ', start: 1, stop: 0 }] }
    made.llama2 = whole({ added_tokens: tokens, normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '▁' },
      { type: 'Replace', pattern: { String: ' ' }, content: '▁' }] }, post_processor: template('<s>', 1), decoder, model })
    made.mistral = whole({ added_tokens: [...tokens, added(Object.keys(vocab).length, '[INST]', { normalized: true }), added(Object.keys(vocab).length + 1, '[/INST]')],
      pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'first', split: false }, post_processor: template('<s>', 1), decoder, model })
    // Without bytes to fall back to, unknown characters are unknown tokens.
    made.metaspace = whole({ added_tokens: tokens, pre_tokenizer: metaspace, decoder: metaspace, model: { ...model, byte_fallback: false, fuse_unk: false } })
  }
  return made
}

// ---- references ----

async function main() {
  if (!count) for (const [name, tokenizer] of Object.entries(families())) fs.writeFileSync(path.join(folder, name + '.json'), JSON.stringify(tokenizer, null, 0) + '\n')
  const names = fs.readdirSync(count ? __dirname : folder).filter(name => name.endsWith('.json')).map(name => name.slice(0, -5))
  const list = ['', ' ', ...PHRASES, ...Array.from({ length: count || 130 }, string)]
  fs.writeFileSync(path.join(folder, 'strings.jsonl'), list.map(text => JSON.stringify({ text }) + '\n').join(''))
  for (const name of names) {
    const tokenizer = Tokenizer.fromFile(path.join(count ? __dirname : folder, name + '.json'))
    const lines = []
    for (let at = 0; at < list.length; at += 1000) {
      const encoded = await tokenizer.encodeBatch(list.slice(at, at + 1000), { addSpecialTokens: true })
      const ids = encoded.map(one => one.getIds())
      const texts = await tokenizer.decodeBatch(ids, true)
      ids.forEach((one, i) => lines.push(one.join(' ') + '\n' + JSON.stringify(texts[i]) + '\n'))
    }
    fs.writeFileSync(path.join(folder, name + '.txt'), lines.join(''))
  }
}
main()
