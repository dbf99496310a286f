/* Models, data, profiles, weights and logs that the command lines read. */
#include "faults/fault_scene.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char model[] = "[Model]\nbatch_size = 20\nepochs = 5\n"
                            "[Optimizer : adam]\nlearning_rate = 0.01\n"
                            "[Dataset : csv]\ninputs = points.csv\nlabels = 1\nvalidation_split = 0.2\n"
                            "[in : input]\ninput_shape = 2\n"
                            "[fc1 : fully_connected]\nunit = 24\nactivation = tanh\n"
                            "[drop : dropout]\nrate = 0.1\n"
                            "[norm : batch_normalization]\n"
                            "[fc2 : fully_connected]\nunit = 24\nactivation = tanh\n"
                            "[out : fully_connected]\nunit = 2\n"
                            "[loss : cross_entropy]\n";

static const char bytes_model[] = "[Model]\nbatch_size = 2\n"
                                  "[Optimizer : sgd]\nlearning_rate = 0.02\n"
                                  "[Dataset : text]\ninputs = abc.txt\n"
                                  "[tokens : input]\ninput_shape = 8\n"
                                  "[embedding : embedding]\nin_dim = 256\nout_dim = 16\npositions = 8\n"
                                  "[attention : multi_head_attention]\nnum_heads = 2\ncausal = true\n"
                                  "[sum : addition]\ninput_layers = embedding, attention\n"
                                  "[head : fully_connected]\nunit = 256\n"
                                  "[loss : cross_entropy]\n";

static const char abc[] = "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc";
static const char rows[] = "id,lower,upper,size\na,0,3,10\nb,1,4,20\nc,3,6,10\nd,2,5,30\ne,5,7,40\n";
static const char profile_csv[] = "index,type,activation_bytes,recompute_flops,output_bytes\n"
                                  "0,attention,1024,2000000,512\n1,ffn,2560,3000000,512\n";

static void put(const char *name, const char *text)
{
    file_text_write(path_in(SCENE_INPUTS, name), text, strlen(text));
}

static void put_copy(const char *name, const char *from)
{
    file_text text = file_text_read(from);
    if (!text.bytes) {
        fprintf(stderr, "faults: %s is missing; run this in the root of the sources\n", from);
        exit(99);
    }
    file_text_write(path_in(SCENE_INPUTS, name), text.bytes, text.count);
    file_text_free(&text);
}

/* Two arrays of NumPy's format, with the numbers of model.ini's data. */
static void put_arrays(void)
{
    enum { SAMPLES = 100, HEADER = 128 };
    char bytes[HEADER + SAMPLES * 8];
    float points[SAMPLES][2];
    memset(bytes, ' ', HEADER);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length =
        snprintf(bytes + 10, HEADER - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }", SAMPLES);
    bytes[10 + length] = ' ';
    bytes[HEADER - 1] = '\n';
    for (int i = 0; i < SAMPLES; i++) {
        points[i][0] = (float)i / SAMPLES;
        points[i][1] = 1 - points[i][0] * points[i][0];
    }
    memcpy(bytes + HEADER, points, sizeof points);
    file_text_write(path_in(SCENE_INPUTS, "points.npy"), bytes, HEADER + sizeof points);
    memset(bytes + 10, ' ', HEADER - 11);
    length = snprintf(bytes + 10, HEADER - 10, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d,), }", SAMPLES);
    bytes[10 + length] = ' ';
    int32_t labels[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = i & 1;
    memcpy(bytes + HEADER, labels, sizeof labels);
    file_text_write(path_in(SCENE_INPUTS, "labels.npy"), bytes, HEADER + sizeof labels);
}

/* A model in a folder, with a tokenizer and a template of chats, adapters of it, and folders that are written to. */
static void put_folders(const char *sources)
{
    static const char *const folders[] = {"llama", "before", "adapter", "merged"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        folder_make(path_in(SCENE_INPUTS, folders[i]));
    put_copy("llama/config.json", path_in(sources, "tests/reference/pretrained/llama/config.json"));
    put_copy("llama/model.safetensors", path_in(sources, "tests/reference/pretrained/llama/model.safetensors"));
    put_copy("llama/tokenizer.json", path_in(sources, "tests/data/tokenizers/qwen2.json"));
    put("llama/tokenizer_config.json",
        "{\"eos_token\": \"<|im_end|>\", \"chat_template\": \"{% for m in messages %}<|im_start|>{{ m.role }}\\n"
        "{{ m.content }}<|im_end|>\\n{% endfor %}\"}");
    put_copy("before/adapter_config.json",
             path_in(sources, "tests/reference/pretrained/llama/adapter/adapter_config.json"));
    put_copy("before/adapter_model.safetensors",
             path_in(sources, "tests/reference/pretrained/llama/adapter/adapter_model.safetensors"));
    put("lesson.txt", "to be or not to be\nthat is the question\nto be or not to be\n");
    put("ids.txt", "72 73 74, 75 [76]\n");
    put("chats.jsonl", "{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", "
                       "\"content\": \"Hello.\"}]}\n{\"prompt\": \"One and one is\", \"completion\": \" two.\"}\n");
}

static void make(const char *command)
{
    traced_result result;
    fault_command_run(SCENE_INPUTS, command, &result);
    if (result.code != 0)
        fault_scene_give_up(command, &result);
}

void fault_scene_make_inputs(const char *sources)
{
    folder_make(SCENE_INPUTS);
    folder_make(path_in(SCENE_INPUTS, "tmp"));
    folder_make(path_in(SCENE_INPUTS, "home"));
    put("model.ini", model);
    put("bytes.ini", bytes_model);
    put("abc.txt", abc);
    put("rows.csv", rows);
    put_arrays();
    char arrays[sizeof model + 100];
    const char *dataset = strstr(model, "[Dataset"), *in = strstr(model, "[in ");
    snprintf(arrays, sizeof arrays,
             "%.*s[Dataset : npy]\ninputs = points.npy\nlabels = labels.npy\nvalidation_split = 0.4\n%s",
             (int)(dataset - model), model, in);
    put("arrays.ini", arrays);
    put_copy("points.csv", path_in(sources, "examples/data/spirals.csv"));
    put_copy("profile.json", path_in(sources, "examples/transformer.json"));
    put("profile.csv", profile_csv);
    put_folders(sources);
    make("train model.ini -j 1 --steps 2 --save weights.st --log run.jsonl -q");
    put_copy("before.jsonl", path_in(SCENE_INPUTS, "run.jsonl"));
    make("train bytes.ini -j 1 --steps 2 --save bytes.st --weights-only -q");
    make("plan model.ini --threads 1 --budget 1330000 -o model-plan.json --profile-out model-chain.json");
    make("plan model.ini --threads 1 --budget 1330000 --graph-out model-graph.json --graph-plan model-graph-plan.json");
    make("profile model.ini -j 1 --repeats 1 -o costs.json");
}
