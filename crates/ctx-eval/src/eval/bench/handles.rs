//! Recognises handles: names and values that an agent has to know exactly to continue.
//!
//! It is a table of patterns, `data/handles.toml`, and shares nothing with the tokeniser of the
//! summariser that it judges. docs/bench.md describes it well enough to be written again.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use ctx_core::text::Slice;
use memchr::memmem;
use regex::Regex;
use serde::Deserialize;

/// The shortest handle, in characters.
const LEAST_CHARS: usize = 4;

/// The number of digits that identify a hash.
const HASH_CHARS: usize = 7;

/// The number of parts that identify a path: its folder and its name.
const PATH_PARTS: usize = 2;

/// A row of the table.
struct Row {
    kind: HandleKind,
    spans: bool,
    pattern: Regex,
}

/// The kind of a handle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize,
)]
#[serde(rename_all = "camelCase")]
pub enum HandleKind {
    /// A path or URL.
    Path,
    /// A name in code.
    Name,
    /// A hexadecimal hash.
    Hash,
    /// A long option of a program.
    Flag,
    /// Text in quotation marks.
    Quoted,
    /// An error, by its class, code or status.
    Error,
    /// A number.
    Number,
}

impl HandleKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 7] =
        [Self::Path, Self::Name, Self::Hash, Self::Flag, Self::Quoted, Self::Error, Self::Number];

    /// Returns the name used in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Name => "name",
            Self::Hash => "hash",
            Self::Flag => "flag",
            Self::Quoted => "quoted",
            Self::Error => "error",
            Self::Number => "number",
        }
    }
}

/// A handle: its kind, and the text that identifies it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Handle {
    pub(super) kind: HandleKind,
    pub(super) text: String,
}

static TABLE: LazyLock<Vec<Row>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        handle: Vec<Line>,
    }
    #[derive(Deserialize)]
    struct Line {
        kind: HandleKind,
        pattern: String,
        #[serde(default)]
        spans: bool,
    }
    let file: File = toml::from_str(include_str!("../../../data/handles.toml"))
        .expect("a test parses the table");
    let row = |line: Line| Row {
        kind: line.kind,
        spans: line.spans,
        pattern: Regex::new(&line.pattern).expect("a test compiles the patterns"),
    };
    file.handle.into_iter().map(row).collect()
});

/// Returns the handles in a text.
pub(super) fn handles(text: &str) -> BTreeSet<Handle> {
    let mut taken = vec![false; text.len()];
    let mut found = BTreeSet::new();
    for row in TABLE.iter() {
        for groups in row.pattern.captures_iter(text) {
            let Some(group) = groups.get(1) else { continue };
            let overlaps = taken[group.range()].contains(&true);
            let is_words = group.as_str().trim().contains(char::is_whitespace);
            if overlaps && !(row.spans && is_words) {
                continue;
            }
            let Some(text) = normal(row.kind, group.as_str()) else { continue };
            taken[group.range()].fill(true);
            found.insert(Handle { kind: row.kind, text });
        }
    }
    found
}

/// Returns the text that identifies a handle; `None` if it is too short or not of its kind.
fn normal(kind: HandleKind, text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches(['.', ':', ';', ',', '/']);
    let text = match kind {
        HandleKind::Path => {
            let is_named = |part: &&str| !matches!(*part, "" | "." | ".." | "~");
            let parts: Vec<&str> = text.split('/').filter(is_named).collect();
            parts[parts.len().saturating_sub(PATH_PARTS)..].join("/")
        }
        HandleKind::Hash => {
            let has = |is: fn(&u8) -> bool| text.bytes().any(|byte| is(&byte));
            let is_hash = has(u8::is_ascii_digit) && has(u8::is_ascii_lowercase);
            text.get(..HASH_CHARS).filter(|_| is_hash)?.to_owned()
        }
        _ => text.to_owned(),
    };
    (kind == HandleKind::Number || text.chars().count() >= LEAST_CHARS).then_some(text)
}

impl Handle {
    /// Whether a text contains the handle as a whole word. The folder and the name of a path may be
    /// apart in one line. A hash may be longer.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let is_flag = self.kind == HandleKind::Flag;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || (c == '-' && is_flag);
        let is_bounded = self.kind != HandleKind::Hash;
        holds_word(text, &self.text, is_bounded, is_word)
            || (self.kind == HandleKind::Path && self.is_in_parts(text))
    }

    fn is_in_parts(&self, text: &str) -> bool {
        let Some((folder, name)) = self.text.split_once('/') else { return false };
        let folder = Self { kind: HandleKind::Name, text: format!("{folder}/") };
        let name = Self { kind: HandleKind::Name, text: name.to_owned() };
        let lines = text.lines().filter(|line| line.contains(&name.text));
        lines
            .filter(|line| folder.is_in(line))
            .any(|line| line.split_once(&folder.text).is_some_and(|(_, rest)| name.is_in(rest)))
    }
}

/// Whether a text contains `word` outside of a longer word. Text may follow directly if the word is
/// not bounded.
pub(crate) fn holds_word(
    text: &str,
    word: &str,
    is_bounded: bool,
    is_word: impl Fn(char) -> bool,
) -> bool {
    let joins = |one: Option<char>, two: Option<char>| {
        one.zip(two).is_some_and(|(one, two)| is_word(one) && is_word(two))
    };
    memmem::find_iter(text.as_bytes(), word.as_bytes()).any(|at| {
        let (before, after) = (text.slice(..at), text.slice(at + word.len()..));
        let begins_inside = joins(before.chars().next_back(), word.chars().next());
        let ends_inside = is_bounded && joins(after.chars().next(), word.chars().next_back());
        !begins_inside && !ends_inside
    })
}

/// Handles as numbers, to keep sets of handles small.
#[derive(Debug, Default)]
pub(super) struct HandleIds {
    ids: HashMap<Handle, u32>,
    all: Vec<Handle>,
}

impl HandleIds {
    /// Returns the numbers of the handles in a text.
    pub(super) fn of(&mut self, text: &str) -> Vec<u32> {
        handles(text).into_iter().map(|handle| self.id(handle)).collect()
    }

    fn id(&mut self, handle: Handle) -> u32 {
        if let Some(&id) = self.ids.get(&handle) {
            return id;
        }
        let id = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.ids.insert(handle.clone(), id);
        self.all.push(handle);
        id
    }

    /// Returns the handle of a number.
    pub(super) fn get(&self, id: u32) -> Option<&Handle> {
        self.all.get(usize::try_from(id).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(HandleKind, &str)]) {
        let found: Vec<_> = handles(text).into_iter().map(|h| (h.kind, h.text)).collect();
        let mut expected: Vec<_> = expected.iter().map(|(k, t)| (*k, (*t).to_owned())).collect();
        expected.sort();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn each_kind_is_recognised_and_plain_words_are_not() {
        use HandleKind::*;
        check("Please read the file and tell me what it does, and/or why.", &[]);
        check("see /home/u/app/src/main.rs:12", &[(Path, "src/main.rs")]);
        check("./src/lib.rs and src/lib.rs, once", &[(Path, "src/lib.rs")]);
        check(
            "in Cargo.toml, ./main.js, ../../a/b.c",
            &[(Path, "Cargo.toml"), (Path, "main.js"), (Path, "a/b.c")],
        );
        check("at https://api.example.com/v2/users?id=1", &[(Path, "v2/users?id=1")]);
        check("crates/ctx/src has it", &[(Path, "ctx/src")]);
        check(
            "thrown: ValueError, ENOENT, E0308",
            &[(Error, "ValueError"), (Error, "ENOENT"), (Error, "E0308")],
        );
        check("it ended with exit code 137", &[(Error, "exit code 137")]);
        check("cargo test --no-fail-fast -q", &[(Flag, "--no-fail-fast")]);
        check("at commit 1a2b3c4d5e6f, not at defaced", &[(Hash, "1a2b3c4")]);
        check(
            "std::mem::take and parse_config(x) and makeTable",
            &[(Name, "std::mem::take"), (Name, "parse_config"), (Name, "makeTable")],
        );
        check(
            "port 8443, version 1.89.0, 12 of 1,024",
            &[(Number, "8443"), (Number, "1.89.0"), (Number, "1,024")],
        );
        check(
            "he said \"keep it small\" and `src/a.rs`",
            &[(Quoted, "keep it small"), (Path, "src/a.rs")],
        );
        check("运行「数据库迁移」之后", &[(Quoted, "数据库迁移")]);
        check(
            "run `cargo nextest run --all` now",
            &[(Quoted, "cargo nextest run --all"), (Flag, "--all")],
        );
    }

    #[test]
    fn the_specification_contains_the_table_of_patterns() {
        let docs = include_str!("../../../../../docs/bench.md");
        let (_, table) = docs.split_once("```toml\n").unwrap();
        let (table, _) = table.split_once("\n```").unwrap();
        let file = include_str!("../../../data/handles.toml");
        assert!(file.trim_end().ends_with(table), "copy data/handles.toml to docs/bench.md");
        assert_eq!(table.matches("[[handle]]").count(), TABLE.len());
    }

    #[test]
    fn a_handle_is_found_only_as_a_whole_word() {
        let is_in =
            |kind, handle: &str, text: &str| Handle { kind, text: handle.to_owned() }.is_in(text);
        assert!(is_in(HandleKind::Name, "parse_config", "call parse_config()"));
        assert!(!is_in(HandleKind::Name, "parse_config", "call parse_config_file()"));
        assert!(!is_in(HandleKind::Number, "8443", "port 18443"));
        assert!(is_in(HandleKind::Hash, "1a2b3c4", "at 1a2b3c4d5e6f"));
        assert!(is_in(HandleKind::Path, "src/main.rs", "changed /w/app/src/main.rs"));
        assert!(is_in(HandleKind::Path, "src/main.rs", "app/src/: lib.rs, main.rs"));
        assert!(!is_in(HandleKind::Path, "src/main.rs", "app/src/: lib.rs\nmain.rs"));
        assert!(!is_in(HandleKind::Path, "src/main.rs", "tests/main.rs"));
        assert!(is_in(HandleKind::Flag, "--all", "with --all."));
        assert!(!is_in(HandleKind::Flag, "--all", "with --all-targets"));
    }
}
