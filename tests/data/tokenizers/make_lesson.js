// Writes lesson.txt, a text of one line, and lesson_merges.txt: the merges that the trainer of the library `tokenizers` finds in
// it. (It trains on lines; remat trains on whole files.)
//   npm install tokenizers@0.23.2 && NODE_PATH=node_modules node make_lesson.js
'use strict'
const fs = require('fs')
const path = require('path')
const os = require('os')
const { Tokenizer } = require('tokenizers')

const strings = fs.readFileSync(path.join(__dirname, 'strings.jsonl'), 'utf8').trim().split('\n').map(line => JSON.parse(line).text)
const lesson = strings.join(' ').replace(/[\r\n]/g, ' ').slice(0, 5000)
fs.writeFileSync(path.join(__dirname, 'lesson.txt'), lesson)
const tokenizer = Tokenizer.fromString(JSON.stringify({ version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
  pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true }, post_processor: null, decoder: null,
  model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false,
    vocab: {}, merges: [] } }))
tokenizer.train([path.join(__dirname, 'lesson.txt')])
const file = path.join(os.tmpdir(), 'lesson-' + process.pid + '.json')
tokenizer.save(file)
const { model } = JSON.parse(fs.readFileSync(file, 'utf8'))
fs.unlinkSync(file)
fs.writeFileSync(path.join(__dirname, 'lesson_merges.txt'), model.merges.map(pair => (Array.isArray(pair) ? pair : pair.split(' ')).join('') + '\n').join(''))
