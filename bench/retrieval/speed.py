"""Measures SQLite FTS5 and tantivy for speed.sh, as `cargo bench -p ctx-memory --bench store` measures
ctx. The texts and questions are the same: words with natural frequencies, spelled by rank."""

import os
import sqlite3
import sys
import tempfile
import time

MASK = (1 << 64) - 1
WORDS, WORDS_OF_A_SEGMENT = 50_000, 150


class Numbers:
    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) & MASK
        return (self.state ^ (self.state >> 29)) >> 16

    def word(self):
        fraction = (self.next() % (1 << 24)) / (1 << 24)
        return min(int(WORDS**fraction), WORDS) - 1


def spelled(word):
    text = ""
    for _ in range(3):
        text += "bdfgklmnprstvz"[word % 14] + "aeiou"[word // 14 % 5]
        word //= 70
    return text


SPELLED = [spelled(word) for word in range(WORDS)]


def segment(n):
    numbers = Numbers((n * 7_919 + 1) & MASK)
    return f"t{n} " + " ".join(SPELLED[numbers.word()] for _ in range(WORDS_OF_A_SEGMENT))


def questions():
    numbers, made = Numbers(42), []
    for _ in range(64):
        words = []
        while len(words) < 6:
            word = numbers.word()
            if word >= 100:
                words.append(SPELLED[word])
        made.append(words)
    return made


def timed(find, asked, least):
    """Returns the median duration of a search in ms. Runs each query once, and at least `least` seconds."""
    times, end = [], time.perf_counter() + least
    while time.perf_counter() < end or len(times) < len(asked):
        words = asked[len(times) % len(asked)]
        began = time.perf_counter()
        find(words)
        times.append(time.perf_counter() - began)
    return 1_000 * sorted(times)[len(times) // 2]


def size(folder):
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return sum(os.path.getsize(path) for path in paths)


def tantivy_index(folder, count):
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("place", stored=True)
    index = tantivy.Index(builder.build(), path=folder)
    writer = index.writer(heap_size=128 << 20, num_threads=1)
    for n in range(count):
        writer.add_document(tantivy.Document(text=segment(n), place=n))
    writer.commit()
    index.reload()

    def find(words):
        searcher = index.searcher()
        hits = searcher.search(index.parse_query(" ".join(words), ["text"]), 20).hits
        return [searcher.doc(at)["place"][0] for _, at in hits]

    def add(n):
        writer.add_document(tantivy.Document(text=segment(n), place=n))
        writer.commit()
        index.reload()
        assert find([f"t{n}"]) == [n]

    return find, add


def fts5_index(folder, count):
    base = sqlite3.connect(os.path.join(folder, "said.db"))
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("CREATE VIRTUAL TABLE said USING fts5(text, content='', tokenize='porter unicode61')")
    rows = ((n, segment(n)) for n in range(count))
    base.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", rows)
    base.commit()
    select = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT 20"

    def find(words):
        query = " OR ".join(f'"{word}"' for word in words)
        return [row[0] for row in base.execute(select, [query])]

    def add(n):
        base.execute("INSERT INTO said(rowid, text) VALUES (?, ?)", (n, segment(n)))
        base.commit()
        assert find([f"t{n}"]) == [n]

    return find, add


def main():
    count = int(os.environ.get("CTX_BENCH_SEGMENTS", "20000"))
    least = float(os.environ.get("CTX_BENCH_SECONDS", "3"))
    text = sum(len(segment(n)) for n in range(min(count, 1_000))) / min(count, 1_000) * count
    asked = questions()
    print(f"| {count:,} segments, {text / 1e6:.0f} MB | search | add and find | on disk |")
    print("|---|--:|--:|--:|")
    for name, make in (("tantivy, en_stem", tantivy_index), ("SQLite FTS5, porter, OR", fts5_index)):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            find, add = make(folder, count)
            on_disk = size(folder) / text
            searching = timed(find, asked, least)
            adding = timed(lambda n: add(n[0]), [[n] for n in range(count, count + 50)], 0)
            print(f"| {name} | {searching:.2f} ms | {adding:.1f} ms | {on_disk:.2f} of the text |")
            sys.stdout.flush()


main()
