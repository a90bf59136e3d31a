//! Damaged files: readable, with their problems reported, and nothing intact lost.

#![allow(clippy::unwrap_used)] // Test helpers are test code.

use ctx_core::ErrorKind;
use ctx_session::{EntryKind, ProblemKind, Transcript};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}"#;

/// A user message `id` on `parent`.
fn entry(id: &str, parent: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-01T00:00:01.000Z","message":{{"role":"user","content":"text of {id}","timestamp":1}}}}"#
    )
}

fn session(lines: &[&str]) -> String {
    let mut text = HEADER.to_owned();
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text.push('\n');
    text
}

fn read(bytes: impl Into<Vec<u8>>) -> Transcript {
    Transcript::from_bytes(bytes.into()).unwrap()
}

/// Returns the texts of the main line, and the kinds of its problems.
fn texts_and_problems(transcript: &Transcript) -> (Vec<String>, Vec<ProblemKind>) {
    let line = transcript.main_line().unwrap();
    let texts = line.iter().map(|item| item.entry.message().unwrap().plain_text());
    let kinds = transcript.problems.iter().map(|problem| problem.kind);
    (texts.collect(), kinds.collect())
}

#[track_caller]
fn check(bytes: impl Into<Vec<u8>>, texts: &[&str], kinds: &[ProblemKind], bad_lines: u64) {
    let bytes = bytes.into();
    let transcript = read(bytes);
    let (found, problems) = texts_and_problems(&transcript);
    assert_eq!(found, texts);
    assert_eq!(problems, kinds, "{:?}", transcript.problems);
    assert_eq!(transcript.stats().unwrap().bad_lines, bad_lines);
    // A repaired copy has the same content and no problems.
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).unwrap();
    let (again, problems) = texts_and_problems(&read(copy));
    assert_eq!(again, texts);
    assert_eq!(problems.iter().filter(|k| **k != ProblemKind::UnknownVersion).count(), 0);
}

const ABC: [&str; 3] = ["text of a", "text of b", "text of c"];

fn abc() -> [String; 3] {
    [entry("a", ""), entry("b", "a"), entry("c", "b")]
}

#[test]
fn sound() {
    let [a, b, c] = abc();
    check(session(&[&a, &b, &c]), &ABC, &[], 0);
}

#[test]
fn no_header() {
    let [a, b, c] = abc();
    let text = format!("{a}\n{b}\n{c}\n");
    check(text, &ABC, &[ProblemKind::MissingHeader], 0);
}

#[test]
fn broken_header() {
    let [a, b, c] = abc();
    let text = format!("{}\n{a}\n{b}\n{c}\n", &HEADER[..30]);
    check(text, &ABC, &[ProblemKind::CorruptLine, ProblemKind::BrokenHeader], 1);
}

#[test]
fn unknown_version() {
    let [a, b, c] = abc();
    let text = session(&[&a, &b, &c]).replace("\"version\":3", "\"version\":99");
    check(text, &ABC, &[ProblemKind::UnknownVersion], 0);
}

#[test]
fn torn_tail() {
    let [a, b, c] = abc();
    let mut text = session(&[&a, &b, &c]);
    text.push_str(&entry("d", "c")[..40]);
    check(text.clone(), &ABC, &[ProblemKind::TornTail], 1);
    let mut aside = Vec::new();
    assert_eq!(read(text).unreadable(&mut aside).unwrap(), 40);
    assert_eq!(aside, format!("{}\n", &entry("d", "c")[..40]).into_bytes());
}

#[test]
fn no_final_newline() {
    let [a, b, c] = abc();
    let text = session(&[&a, &b, &c]);
    check(text.trim_end(), &ABC, &[ProblemKind::NoFinalNewline], 0);
}

#[test]
fn nul_block() {
    let [a, b, c] = abc();
    let nul = "\0".repeat(4096);
    let text = session(&[&a, &format!("{nul}{b}"), &c]);
    check(text, &ABC, &[ProblemKind::NulBytes], 1);
    let text = session(&[&a, &b, &nul, &c]);
    check(text, &ABC, &[ProblemKind::NulBytes], 1);
}

#[test]
fn invalid_utf8() {
    let [a, b, c] = abc();
    let mut bytes = session(&[&a, &b, &c]).into_bytes();
    let at = bytes.windows(9).position(|w| w == b"text of b").unwrap();
    bytes[at] = 0xFF;
    let texts = ["text of a", "\u{FFFD}ext of b", "text of c"];
    check(bytes, &texts, &[ProblemKind::InvalidUtf8], 1);
}

#[test]
fn corrupt_middle_line_is_bridged() {
    let [a, b, c] = abc();
    let text = session(&[&a, &b[..b.len() - 3], &c]);
    let kinds = [ProblemKind::CorruptLine, ProblemKind::BrokenParent];
    check(text, &["text of a", "text of c"], &kinds, 1);
}

#[test]
fn glued_to_a_torn_line() {
    let [a, b, c] = abc();
    let text = session(&[&a, &format!("{}{b}", &entry("x", "a")[..50]), &c]);
    check(text, &ABC, &[ProblemKind::GluedLine], 1);
    let text = session(&[&a, &format!("{b}{c}")]);
    check(text, &ABC, &[ProblemKind::GluedLine], 1);
}

#[test]
fn duplicate_lines_are_read_once() {
    let [a, b, c] = abc();
    check(session(&[&a, &b, &b, &c, &a]), &ABC, &[ProblemKind::DuplicateLine; 2], 0);
    // The same message with different spacing.
    let spaced = b.replace("\"id\":", "\"id\": ");
    check(session(&[&a, &b, &spaced, &c]), &ABC, &[ProblemKind::DuplicateLine], 0);
}

#[test]
fn duplicate_ids_are_both_kept() {
    let [a, b, c] = abc();
    let other = b
        .replace("text of b", "text of the other b")
        .replace("\"parentId\":\"a\"", "\"parentId\":\"b\"");
    let texts = ["text of a", "text of b", "text of the other b", "text of c"];
    check(session(&[&a, &b, &other, &c]), &texts, &[ProblemKind::DuplicateId], 0);
}

#[test]
fn cycles_and_forward_references_are_bridged() {
    let lines = [entry("a", "c"), entry("b", "a"), entry("c", "c")];
    let [a, b, c] = lines.each_ref().map(String::as_str);
    check(session(&[a, b, c]), &ABC, &[ProblemKind::BrokenParent; 2], 0);
}

#[test]
fn ids_that_are_numbers_or_missing() {
    let a = entry("a", "").replace("\"a\",\"parentId\"", "7,\"parentId\"");
    let b = entry("b", "7").replace("\"7\"", "7").replace("\"id\":\"b\",", "");
    let c = entry("c", "x").replace("\"parentId\":\"x\",", "");
    let transcript = read(session(&[&a, &b, &c]));
    let (texts, kinds) = texts_and_problems(&transcript);
    assert_eq!(texts, ABC);
    assert_eq!(kinds, [ProblemKind::MissingId]);
    let ids: Vec<_> = transcript.entries.iter().map(|e| e.id.to_string()).collect();
    assert_eq!(ids, ["7", "00000001", "c"]);
}

#[test]
fn odd_line_ends_and_beginnings() {
    let [a, b, c] = abc();
    let text = session(&[&a, "", &b, "   ", &c]);
    check(text, &ABC, &[ProblemKind::EmptyLines], 0);
    let text = session(&[&a, &b, &c]).replace('\n', "\r\n");
    check(text, &ABC, &[ProblemKind::CarriageReturns], 0);
    let text = format!("\u{FEFF}{}", session(&[&a, &b, &c]));
    check(text, &ABC, &[ProblemKind::ByteOrderMark], 0);
}

#[test]
fn lines_that_are_json_but_not_entries() {
    let [a, b, c] = abc();
    check(
        session(&[&a, "[1]", &b, "null", &c, "{}"]),
        &ABC,
        &[ProblemKind::CorruptLine, ProblemKind::CorruptLine, ProblemKind::MissingId],
        2,
    );
}

#[test]
fn deep_nesting() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let call = format!(
        r#"{{"type":"message","id":"d","parentId":null,"timestamp":"t","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"n","arguments":{{"a":{deep}}}}},{deep}]}}}}"#
    );
    let unknown = format!(r#"{{"type":"hologram","id":"h","parentId":"d","data":{deep}}}"#);
    let transcript = read(session(&[&call, &unknown]));
    assert_eq!(transcript.problems, []);
    let line = transcript.main_line().unwrap();
    let message = line[0].entry.message().unwrap();
    assert_eq!(message.tool_calls().next().unwrap().arguments.as_str().len(), 200_006);
    let mut out = Vec::new();
    for format in ["pi", "openai", "anthropic", "ponybunny"] {
        transcript.convert(format.parse().unwrap(), &mut out).unwrap();
    }
    assert!(Transcript::from_bytes(deep.into_bytes()).is_err());
}

#[test]
fn a_line_of_a_hundred_megabytes() {
    let long = entry("a", "").replace("text of a", &"x".repeat(100 << 20));
    let b = entry("b", "a");
    let transcript = read(session(&[&long, &b]));
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.raw_line(0).unwrap().len(), long.len());
    assert_eq!(
        transcript.main_line().unwrap()[1].entry.message().unwrap().plain_text(),
        "text of b"
    );
}

#[test]
fn unknown_entries_and_roles_are_kept() {
    let unknown = r#"{"type":"hologram","id":"u","parentId":"a","timestamp":"t","x":[1.50]}"#;
    let role = r#"{"type":"message","id":"r","parentId":"u","timestamp":"t","message":{"role":"oracle","content":[{"type":"vision","v":1e2}]}}"#;
    let transcript = read(session(&[&entry("a", ""), unknown, role]));
    assert_eq!(transcript.problems, []);
    assert_eq!(transcript.entries[1].kind, EntryKind::Other("hologram".into()));
    let line = transcript.main_line().unwrap();
    assert_eq!(line[1].entry.message().unwrap().role.name(), "oracle");
    let mut copy = Vec::new();
    transcript.convert(ctx_session::Format::PI, &mut copy).unwrap();
    assert_eq!(String::from_utf8(copy).unwrap(), session(&[&entry("a", ""), unknown, role]));
}

#[test]
fn files_that_are_not_transcripts() {
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10".as_slice();
    for bytes in [
        b"".as_slice(),
        b"  \n\n",
        b"\0\0\0\0",
        png,
        b"hello, I am a letter\n",
        b"{\"a\": 1}",
        b"[1, 2, 3]",
        b"{\"messages\": 5}",
        b"{",
        b"[[[[",
        b"name,age\nx,1\n",
        &[0xFF; 5000],
    ] {
        let error = Transcript::from_bytes(bytes.to_vec()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownFormat, "{:?}", String::from_utf8_lossy(bytes));
        assert!(error.hint_text().is_some());
    }
    let folder = tempfile::tempdir().unwrap();
    let error = Transcript::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownFormat);
    let error = Transcript::open(&folder.path().join("absent.jsonl")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_file_changed_by_another_program_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let [a, b, c] = abc();
    std::fs::write(&path, session(&[&a, &b, &c])).unwrap();
    let transcript = Transcript::open(&path).unwrap();
    let line = transcript.main_line().unwrap();
    std::fs::write(&path, session(&[&a, &b.replace("text of b", "TEXT OF B"), &c])).unwrap();
    assert_eq!(line[0].entry.message().unwrap().plain_text(), "text of a");
    let error = line[1].entry.message().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("line: 3") && error.to_string().contains("s.jsonl"));
}
