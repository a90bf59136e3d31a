//! Folders, indexed and searched.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use ctx_core::{SnippetSource, WorkspaceSearch};
use futures_executor::block_on;
use tempfile::TempDir;

use super::*;

mod updates;
mod vectors;

/// Longer than indexing any of these folders takes.
const LONG: Duration = Duration::from_secs(3_600);

/// A folder with files, and a folder for its index.
struct Room {
    dir: TempDir,
}

impl Room {
    fn with(files: &[(&str, &str)]) -> Self {
        let room = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir(room.folder()).unwrap();
        files.iter().for_each(|(path, text)| room.write(path, text));
        room
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("w")
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn index(&self) -> PathBuf {
        self.dir.path().join("i")
    }

    fn open(&self) -> Workspace {
        Workspace::open(&self.index(), &self.folder(), WorkspaceSettings::default()).unwrap()
    }
}

fn update(workspace: &Workspace) -> IndexReport {
    workspace.update(|_| ControlFlow::Continue(())).unwrap()
}

/// Returns the paths that match a question, best first.
fn paths(workspace: &Workspace, question: &str) -> Vec<String> {
    let found = workspace.search(question, 10, None).unwrap();
    found.snippets.into_iter().map(|snippet| snippet.path).collect()
}

fn counts(report: &IndexReport) -> [usize; 4] {
    [report.added, report.changed, report.unchanged, report.removed]
}

#[test]
fn a_question_finds_the_lines_that_answer_it_by_words_and_by_the_name_of_the_file() {
    let long: String = (1..=300).map(|n| format!("line {n} says nothing of interest\n")).collect();
    let room = Room::with(&[
        ("src/deploy.rs", "// how to ship\nfn deployToStaging() {}\n"),
        ("docs/long.md", &format!("{long}the zebra crosses here\n{long}")),
        ("memory/2026-02-10.md", "We chose Stripe for payments.\n"),
    ]);
    let workspace = room.open();
    let report = update(&workspace);
    assert_eq!((report.files, counts(&report)), (3, [3, 0, 0, 0]));
    assert!(report.chunks > 6, "{report:?}");
    assert_eq!(paths(&workspace, "staging"), ["src/deploy.rs"]);
    assert_eq!(paths(&workspace, "what is in src/deploy.rs?")[0], "src/deploy.rs");
    let zebra = &workspace.search("zebra", 10, None).unwrap().snippets[0];
    assert!((zebra.first_line..=zebra.last_line).contains(&301), "{zebra:?}");
    let lines: Vec<&str> = zebra.text.lines().collect();
    assert_eq!(lines[(301 - zebra.first_line) as usize], "the zebra crosses here");
    let stripe = &workspace.search("payments", 10, None).unwrap().snippets[0];
    assert_eq!((stripe.source, stripe.score), (SnippetSource::Memory, 1.0));
    assert_eq!(paths(&workspace, "nothing says"), ["docs/long.md"; 10]);
    assert!(paths(&workspace, "xylophone").is_empty() && paths(&workspace, "?").is_empty());
}

#[test]
fn a_second_update_touches_only_what_changed() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana"), ("c.md", "cherry")]);
    let workspace = room.open();
    update(&workspace);
    let meta = || fs::read(workspace.lexical().join("meta.json")).unwrap();
    let before = meta();
    let report = update(&workspace);
    assert_eq!((counts(&report), report.bytes), ([0, 0, 3, 0], 0));
    assert_eq!(meta(), before, "the index is not written where nothing changed");
    room.write("b.md", "blueberry");
    room.write("d.md", "date");
    fs::remove_file(room.folder().join("c.md")).unwrap();
    let report = update(&workspace);
    assert_eq!((counts(&report), report.bytes, report.files), ([1, 1, 1, 1], 13, 3));
    for (question, found) in [
        ("apple", &["a.md"][..]),
        ("banana", &[]),
        ("blueberry", &["b.md"]),
        ("cherry", &[]),
        ("date", &["d.md"]),
    ] {
        assert_eq!(paths(&workspace, question), found, "{question}");
    }
    // It is restored unchanged: its words are still in the index.
    room.write("c.md", "cherry");
    assert_eq!(counts(&update(&workspace)), [1, 0, 3, 0]);
    assert_eq!(paths(&workspace, "cherry"), ["c.md"]);
}

#[test]
fn a_file_with_a_matching_path_ranks_before_a_file_with_matching_words() {
    let test = "fn all() {\n    // A torn line is repaired: no torn line is left.\n}\n";
    let room = Room::with(&[
        ("src/repair.rs", "fn mend() {\n    // What is torn is cut off.\n}\n"),
        ("tests/all.rs", test),
    ]);
    (0..8).for_each(|n| room.write(&format!("src/{n}.rs"), "a line of something else"));
    let workspace = room.open();
    update(&workspace);
    assert_eq!(
        paths(&workspace, "how is a torn line repaired?")[..2],
        ["src/repair.rs", "tests/all.rs"]
    );
}

#[test]
fn ignored_hidden_large_and_binary_files_are_skipped_and_counted() {
    let room = Room::with(&[
        (".gitignore", "target/\n*.log\n"),
        ("target/debug/out.md", "needle"),
        ("a.log", "needle"),
        (".env", "needle"),
        (".git/config", "needle"),
        ("large.txt", &"needle ".repeat(200_000)),
        ("kept.md", "needle"),
    ]);
    room.write("image.png", b"\x89PNG\0\0needle");
    room.write("latin1.txt", b"caf\xe9 needle");
    let workspace = room.open();
    let report = update(&workspace);
    let expected = Skipped { hidden: 3, binary: 1, large: 1, ..Skipped::default() };
    assert_eq!((report.files, report.skipped), (2, expected));
    let mut found = paths(&workspace, "needle");
    found.sort();
    assert_eq!(found, ["kept.md", "latin1.txt"]);
    assert_eq!(update(&workspace).skipped, expected, "also where nothing is read again");
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out_of_the_folder() {
    use std::os::unix::fs::symlink;
    let room = Room::with(&[("in/a.md", "inside")]);
    let outside = room.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.md"), "inside").unwrap();
    fs::write(outside.join("s.md"), "outside").unwrap();
    symlink(&outside, room.folder().join("folder")).unwrap();
    symlink(outside.join("s.md"), room.folder().join("file.md")).unwrap();
    symlink(room.folder(), room.folder().join("itself")).unwrap();
    let workspace = room.open();
    let report = update(&workspace);
    assert_eq!((report.files, report.skipped.links), (1, 3));
    assert!(paths(&workspace, "outside").is_empty());
    assert_eq!(paths(&workspace, "inside"), ["in/a.md"]);
    // A folder that becomes a link is not followed, even to the same words.
    fs::rename(room.folder().join("in"), room.dir.path().join("was")).unwrap();
    symlink(&outside, room.folder().join("in")).unwrap();
    let found = workspace.search("inside", 10, None).unwrap();
    assert_eq!((found.snippets.len(), found.stale), (0, 1));
}

#[test]
fn files_changed_since_indexing_are_not_shown() {
    let room = Room::with(&[("a.md", "apple pie"), ("b.md", "apple juice"), ("c.md", "apple")]);
    let workspace = room.open();
    update(&workspace);
    room.write("a.md", "apple tax");
    fs::remove_file(room.folder().join("b.md")).unwrap();
    let found = workspace.search("apple", 10, None).unwrap();
    assert_eq!((found.snippets.len(), found.stale), (1, 2));
    assert_eq!(found.snippets[0].path, "c.md");
}

#[test]
fn secrets_reach_neither_index_nor_snippets_and_line_numbers_stay_correct() {
    let secret = "x7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKm";
    let body = "MIIEpAIBAAKCAQEAx7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0gH2jKmQ4w8E5r\n".repeat(12);
    let key = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\n");
    let text = format!("# staging\ntoken = ghp_{secret}\n{key}port = 8080 # harbour\n");
    let room = Room::with(&[("deploy.toml", &text)]);
    let workspace = room.open();
    update(&workspace);
    let found = workspace.search("harbour", 1, None).unwrap().snippets.remove(0);
    assert!(!found.text.contains(secret) && !found.text.contains("MIIE"), "{}", found.text);
    assert!(found.text.contains("[redacted:"), "{}", found.text);
    assert_eq!(found.last_line, 17, "{found:?}");
    assert_eq!(found.text.lines().count(), 17, "{}", found.text);
    for word in [secret, &format!("ghp_{secret}"), "MIIEpAIBAAKCAQEAx7Kq2LmN9pR4sT6vW8yZ1aB3cD5eF0"]
    {
        assert!(paths(&workspace, word).is_empty(), "{word}");
    }
}

#[test]
fn a_torn_damaged_or_missing_index_is_rebuilt() {
    let room = Room::with(&[("a.md", "apple"), ("b.md", "banana")]);
    let list = room.open().list();
    let lexical = room.open().lexical();
    let damages: [(&str, &dyn Fn()); 7] = [
        ("a row is torn", &|| {
            let text = fs::read(&list).unwrap();
            fs::write(&list, &text[..text.len() - 20]).unwrap();
        }),
        ("the header is torn", &|| {
            let text = fs::read(&list).unwrap();
            fs::write(&list, &text[7..]).unwrap();
        }),
        ("the list is no text", &|| fs::write(&list, [0xff; 3_000]).unwrap()),
        ("the list is gone", &|| fs::remove_file(&list).unwrap()),
        ("the index is gone", &|| fs::remove_dir_all(&lexical).unwrap()),
        ("the index is damaged", &|| {
            for file in fs::read_dir(&lexical).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|kind| kind == "idx" || kind == "term") {
                    fs::write(path, b"rubbish").unwrap();
                }
            }
        }),
        ("the index says it is another", &|| {
            fs::write(lexical.join("meta.json"), "{}").unwrap();
        }),
    ];
    update(&room.open());
    for (what, damage) in damages {
        damage();
        let service = WorkspaceService::new(room.open(), None);
        let found = block_on(service.search("apple", 10)).unwrap();
        assert_eq!(found.snippets.len(), 1, "{what}: {found:?}");
        assert_eq!(counts(&update(&room.open()))[2], 2, "{what}");
        assert_eq!(paths(&room.open(), "banana"), ["b.md"], "{what}");
    }
}

#[test]
fn a_list_with_files_outside_the_folder_opens_none_of_them() {
    let room = Room::with(&[("a.md", "apple")]);
    fs::write(room.dir.path().join("secret.md"), "apple").unwrap();
    let workspace = room.open();
    update(&workspace);
    let list = fs::read_to_string(workspace.list()).unwrap();
    for path in ["../secret.md", "/etc/hosts", "", "a/../../secret.md"] {
        fs::write(workspace.list(), list.replace("a.md", path)).unwrap();
        let found = room.open().search("apple", 10, None).unwrap();
        assert!(found.snippets.is_empty(), "{path}: {found:?}");
    }
}
