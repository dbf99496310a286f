"""Reads a model file as docs/formats.md describes it. For the
PyTorch reference only: it trusts that `remat` has accepted the file."""


class Layer:
    """A layer with its texts. `copy` is the number of the repeated group's copy it belongs to, or None."""

    def __init__(self, name, kind, entries, inputs, copy):
        self.name, self.kind, self.entries, self.inputs, self.copy = name, kind, entries, inputs, copy

    def text(self, key, standard=None):
        return self.entries.get(key, standard)

    def count(self, key, standard=0):
        return int(self.entries.get(key, standard))

    def number(self, key, standard):
        return float(self.entries.get(key, standard))

    def flag(self, key, standard):
        return self.entries.get(key, "true" if standard else "false").lower() == "true"

    def pair(self, key, standard):
        parts = [int(part) for part in self.entries.get(key, standard).split(",")]
        return (parts[0], parts[-1])


class Model:
    def __init__(self):
        self.settings, self.layers, self.folder = {"model": {}, "optimizer": {}, "dataset": {}}, [], ""

    def get(self, section, key, standard, make=str):
        return make(self.settings[section].get(key, standard))


def read_sections(path):
    sections = []
    with open(path) as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                name, _, kind = line[1:-1].partition(":")
                sections.append((name.strip(), {"type": kind.strip()} if kind else {}))
            elif line:
                key, _, value = line.partition("=")
                sections[-1][1][key.strip().lower()] = value.strip()
    return sections


def add(model, name, entries, copy, before):
    def fill(text):
        return text if copy is None else text.replace("{i}", str(copy)).replace("{in}", before)

    entries = {key: fill(value) for key, value in entries.items()}
    if "input_layers" in entries:
        inputs = [part.strip() for part in entries["input_layers"].split(",")]
    elif entries["type"] == "input":
        inputs = []
    else:
        inputs = [model.layers[-1].name]
    model.layers.append(Layer(fill(name), entries["type"].lower(), entries, inputs, copy))


def read_model(path):
    model, sections, at = Model(), read_sections(path), 0
    model.folder = path.rpartition("/")[0] or "."
    while at < len(sections):
        name, entries = sections[at]
        at += 1
        if name.lower() in model.settings:
            model.settings[name.lower()] = entries
        elif name.lower().split()[0] == "repeat":
            end = next(i for i in range(at, len(sections)) if sections[i][0].lower() == "end")
            for copy in range(int(entries["count"])):
                before = model.layers[-1].name
                for part, part_entries in sections[at:end]:
                    if part.lower().split()[0] != "block":
                        add(model, part, part_entries, copy, before)
            at = end + 1
        elif name.lower().split()[0] != "block":
            add(model, name, entries, None, None)
    return model
