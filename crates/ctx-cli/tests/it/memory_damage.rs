//! Memories with every kind of damage: requests are sent, intact parts are recalled, and the user
//! is warned.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::memory::{asks_again, keeps_old, long_talk, room};
use crate::support::{Ran, Room, text};

const QUESTION: &str = "remind me, what is the parrot of the lighthouse keeper called?";

/// A way to damage the folder of a memory.
struct Damage {
    what: &'static str,
    does: fn(&Path),
    /// Whether the requested message can still be recalled.
    recalled: bool,
    /// The expected warning, if there is one.
    told: &'static str,
}

fn change(path: &Path, with: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("it is there");
    with(&mut bytes);
    fs::write(path, bytes).expect("it can be written");
}

fn a_folder_in_the_place_of(path: &Path) {
    fs::remove_file(path).expect("it was there");
    fs::create_dir(path).expect("it can be made");
}

const DAMAGES: [Damage; 15] = [
    Damage {
        what: "a torn archive",
        does: |at| change(&at.join("segments.jsonl"), |bytes| bytes.truncate(bytes.len() - 40)),
        recalled: true,
        told: "",
    },
    Damage {
        what: "invalid lines in the archive",
        does: |at| {
            change(&at.join("segments.jsonl"), |bytes| {
                let mut wrong = b"{\"id\":7}\n\xff\xfe\n[1,2\n".to_vec();
                wrong.append(bytes);
                *bytes = wrong;
            });
        },
        recalled: true,
        told: "",
    },
    Damage {
        what: "a folder in place of the archive",
        does: |at| a_folder_in_the_place_of(&at.join("segments.jsonl")),
        recalled: false,
        told: "segments.jsonl",
    },
    Damage {
        what: "truncated vectors",
        does: |at| change(&at.join("vectors.bin"), |bytes| bytes.truncate(bytes.len() / 2)),
        recalled: true,
        told: "vectors",
    },
    Damage {
        what: "a foreign file in place of the vectors",
        does: |at| fs::write(at.join("vectors.bin"), "PK\u{3}\u{4} a zip").expect("it is written"),
        recalled: true,
        told: "vectors",
    },
    Damage {
        what: "vectors of another dimension",
        does: |at| change(&at.join("vectors.bin"), |bytes| bytes[8] = 7),
        recalled: true,
        told: "vectors",
    },
    Damage {
        what: "vectors of another embedder",
        does: |at| {
            fs::write(at.join("vectors.bin.json"), "{\"embedder\":\"x\"").expect("it is written");
        },
        recalled: true,
        told: "",
    },
    Damage {
        what: "a folder in place of the vectors",
        does: |at| a_folder_in_the_place_of(&at.join("vectors.bin")),
        recalled: true,
        told: "vectors",
    },
    Damage {
        what: "an index of another version",
        does: |at| {
            change(&at.join("lexical/meta.json"), |bytes| {
                *bytes = String::from_utf8_lossy(bytes).replace("ctx-memory", "other").into_bytes();
            });
        },
        recalled: true,
        told: "index",
    },
    Damage {
        what: "an index with empty files",
        does: |at| {
            for file in fs::read_dir(at.join("lexical")).expect("a folder") {
                fs::write(file.expect("a file").path(), "").expect("it is written");
            }
        },
        recalled: true,
        told: "index",
    },
    Damage {
        what: "no index",
        does: |at| fs::remove_dir_all(at.join("lexical")).expect("it was there"),
        recalled: true,
        told: "",
    },
    Damage {
        what: "a file in place of the index",
        does: |at| {
            fs::remove_dir_all(at.join("lexical")).expect("it was there");
            fs::write(at.join("lexical"), "no folder").expect("it is written");
        },
        recalled: true,
        told: "index",
    },
    Damage {
        what: "a foreign folder in place of the index",
        does: |at| {
            fs::remove_dir_all(at.join("lexical")).expect("it was there");
            fs::create_dir(at.join("lexical")).expect("it can be made");
            fs::write(at.join("lexical/precious.txt"), "precious").expect("it is written");
        },
        recalled: true,
        told: "precious.txt",
    },
    Damage {
        what: "facts that cannot be read",
        does: |at| fs::write(at.join("knowledge.jsonl"), b"\xff{\n\0\n[").expect("it is written"),
        recalled: true,
        told: "2 lines of the facts",
    },
    Damage {
        what: "a file in place of the memory",
        does: |at| {
            fs::remove_dir_all(at).expect("it was there");
            fs::write(at, "no folder").expect("it is written");
        },
        recalled: false,
        told: "memory",
    },
];

/// Creates a home with an archived session, and the end of that session, which asks for a message
/// that only the archive has.
fn asked() -> (Room, std::path::PathBuf) {
    let room = room(&keeps_old(json!({"enabled": true, "search": {"hashWeight": 0.3}})));
    let file = room.write("talk.jsonl", long_talk(320));
    room.json(&["memory", "ingest", text(&file)]);
    room.json(&["memory", "rebuild"]);
    fs::write(&file, asks_again()).expect("it is written");
    (room, file)
}

#[test]
fn with_any_damage_the_request_is_sent_and_intact_parts_are_recalled() {
    for Damage { what, does, recalled, told } in DAMAGES {
        let (room, file) = asked();
        let at = room.path("agents/main/memory/context");
        does(&at);
        for record in [false, true] {
            let args = ["assemble", text(&file), "--window", "16k", "--json"];
            let more: &[&str] = if record { &["--record"] } else { &[] };
            let ran = room.ctx(&[&args, more].concat());
            assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
            let sent: Value = serde_json::from_str(&ran.stdout).expect("JSON");
            let sent = sent["messages"].to_string();
            assert!(sent.contains(QUESTION), "{what}: {sent}");
            let block = sent.split("<recalled-context").nth(1);
            let is_recalled = block.is_some_and(|block| block.contains("Quillon"));
            assert_eq!(is_recalled, recalled, "{what}, {record}: {}", ran.stderr);
            if !record {
                assert!(ran.stderr.contains(told), "{what}: {:?}", ran.stderr);
            }
        }
    }
}

#[test]
fn unreadable_facts_are_reported_and_an_unwritable_index_has_a_hint() {
    let (room, _) = asked();
    let at = room.path("agents/main/memory/context");
    fs::write(at.join("knowledge.jsonl"), "Prose.\n{\"id\":1},\n\0\0\0\n").expect("it is written");
    let told = room.ctx(&["memory", "facts"]).stderr;
    assert!(told.contains("3 lines of the facts") && told.contains("knowledge.jsonl"), "{told}");

    fs::remove_dir_all(at.join("lexical")).expect("it was there");
    fs::write(at.join("lexical"), "hi").expect("it is written");
    let told = room.ctx(&["memory", "search", "the parrot"]).stderr;
    assert_eq!(told.matches("warning: the lexical index").count(), 1, "{told}");
    let Ran { code, stderr, .. } = room.ctx(&["memory", "rebuild"]);
    assert!(code == Some(1) && stderr.contains("hint: it is a file: remove"), "{stderr}");
    assert_eq!(fs::read_to_string(at.join("lexical")).expect("it is there"), "hi");
}
