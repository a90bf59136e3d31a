"""Compares the recall of ctx with that of tantivy, SQLite FTS5 and MiniLM, for run.sh."""

import argparse
import glob
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

DATA = os.environ["CTX_DATA"]
CUTS = (5, 10, 20, 50)
# The number of conversations of each dataset, from the first, on which constants were chosen.
CHOSEN_ON = {"locomo": 3, "beam": 5}


def locomo():
    conversations = []
    for path in sorted(glob.glob(os.path.join(DATA, "locomo", "*.json"))):
        with open(path) as file:
            conversations += json.load(file)
    for conversation in conversations:
        yield conversation["sample_id"], conversation, *locomo_one(conversation)


def locomo_one(conversation):
    said = conversation["conversation"]
    numbers = sorted(int(m[1]) for key in said if (m := re.fullmatch(r"session_(\d+)", key)))
    texts, places = [], {}
    for number in numbers:
        for turn in said[f"session_{number}"]:
            text = turn["text"]
            if turn.get("blip_caption"):
                text += f" [shares image: {turn['blip_caption']}]"
            places.setdefault(turn["dia_id"], len(texts))
            texts.append(f"{turn['speaker']}: {text}")
    questions = []
    for question in conversation["qa"]:
        ids = re.findall(r"D:?(\d+):(\d+)", " ".join(question["evidence"]))
        names = [f"D{int(session)}:{int(turn)}" for session, turn in ids]
        evidence = {places[name] for name in names if name in places}
        if evidence and question["category"] != 5:
            questions.append((question["question"], evidence))
    return texts, questions


def beam():
    folders = [f for f in glob.glob(os.path.join(DATA, "beam", "*")) if os.path.isdir(f)]
    for folder in sorted(folders, key=lambda f: int(os.path.basename(f))):
        with open(os.path.join(folder, "chat.json")) as file:
            chat = json.load(file)
        with open(os.path.join(folder, "probing_questions.json")) as file:
            asked = json.load(file)
        messages = [m for batch in chat for group in batch["turns"] for m in group]
        places = {m["id"]: n for n, m in enumerate(messages)}
        questions = []
        for question in (q for questions in asked.values() for q in questions):
            ids = numbers_in(question.get("source_chat_ids"))
            evidence = {places[i] for i in ids if i in places}
            if evidence:
                questions.append((question["question"], evidence))
        yield os.path.basename(folder), folder, [m["content"] for m in messages], questions


def numbers_in(value):
    if isinstance(value, int):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [n for one in value for n in numbers_in(one)] if isinstance(value, list) else []


def words(text):
    return re.findall(r"\w+", text.lower())


def by_tantivy(texts, questions):
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("place", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for place, text in enumerate(texts):
        writer.add_document(tantivy.Document(text=text, place=place))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    for question, _ in questions:
        query = index.parse_query(" ".join(words(question)), ["text"])
        hits = searcher.search(query, 200).hits
        ranked = sorted((-score, searcher.doc(at)["place"][0]) for score, at in hits)
        yield [place for _, place in ranked]


def by_fts5(texts, questions):
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize='porter unicode61')")
    base.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", enumerate(texts))
    select = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said), rowid LIMIT 200"
    for question, _ in questions:
        query = " OR ".join(f'"{word}"' for word in words(question))
        yield [row[0] for row in base.execute(select, [query])]


def by_minilm(model):
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(model)

    def rank(texts, questions):
        said = encoder.encode(texts, normalize_embeddings=True)
        for question, _ in questions:
            scores = said @ encoder.encode(question, normalize_embeddings=True)
            yield sorted(range(len(texts)), key=lambda n: (-scores[n], n))[:200]

    return rank


def judged(ranked, questions):
    """Returns the recall at each cut, one list per question."""
    return [
        [len(evidence & set(ranking[:cut])) / len(evidence) for cut in CUTS]
        for ranking, (_, evidence) in zip(ranked, questions, strict=True)
    ]


def by_ctx(dataset, conversations, *options):
    with tempfile.TemporaryDirectory() as folder:
        if dataset == "locomo":
            path = os.path.join(folder, "some.json")
            with open(path, "w") as file:
                json.dump([source for _, source, _, _ in conversations], file)
        else:
            path = folder
            for name, source, _, _ in conversations:
                os.symlink(os.path.abspath(source), os.path.join(folder, name))
        command = [os.environ["CTX_BIN"], "eval", "recall", "--dataset", dataset, path, "--json"]
        report = json.loads(subprocess.run([*command, *options], check=True, stdout=-1).stdout)
    return report["questions"], [report["recall"][str(cut)] for cut in CUTS]


def measure(dataset, conversations, model):
    peers = {"tantivy en_stem": by_tantivy, "SQLite FTS5 porter, OR": by_fts5}
    if model:
        try:
            peers["MiniLM alone"] = by_minilm(model)
        except ImportError:
            print("note: no sentence-transformers: 'MiniLM alone' is skipped", file=sys.stderr)
    rows = {}
    for name, rank in peers.items():
        each = [judged(rank(texts, asked), asked) for _, _, texts, asked in conversations]
        flat = [question for one in each for question in one]
        rows[name] = [sum(column) / len(flat) for column in zip(*flat)]
    count, rows["ctx"] = by_ctx(dataset, conversations)
    if count != sum(len(asked) for _, _, _, asked in conversations):
        sys.exit(f"cannot compare: ctx and its peers found different numbers of questions in {dataset}")
    if model:
        cache = os.path.join(tempfile.gettempdir(), "ctx-bench-vectors")
        options = ["--embedder", f"transformer:{model}", "--cache", cache]
        rows["ctx with MiniLM"] = by_ctx(dataset, conversations, *options)[1]
    return count, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", help="a folder that contains all-MiniLM-L6-v2")
    parser.add_argument("--split", choices=["all", "chosen-on", "held-out"], default="all")
    args = parser.parse_args()
    for dataset, source in (("locomo", locomo), ("beam", beam)):
        conversations, first = list(source()), CHOSEN_ON[dataset]
        split = {"all": slice(None), "chosen-on": slice(first), "held-out": slice(first, None)}
        conversations = conversations[split[args.split]]
        if not conversations:
            print(f"note: no {dataset} in {DATA}", file=sys.stderr)
            continue
        count, rows = measure(dataset, conversations, args.model)
        base = rows["tantivy en_stem"][1]
        print(f"\n{dataset}: {len(conversations)} conversations ({args.split}), {count} questions\n")
        print("| | " + " | ".join(f"R@{cut}" for cut in CUTS) + " | R@10 against tantivy |")
        print("|---|" + "---|" * (len(CUTS) + 1))
        for name, recall in rows.items():
            cells = [f"{100 * share:.1f}" for share in recall]
            print(f"| {name} | {' | '.join(cells)} | {100 * (recall[1] - base):+.1f} |")


if __name__ == "__main__":
    main()
