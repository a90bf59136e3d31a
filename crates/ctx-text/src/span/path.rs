//! Recognises paths.

use std::sync::LazyLock;

use ctx_core::text::Slice;
use regex::Regex;

use super::code::BRANCH_PREFIXES;
use crate::WordList;
use crate::fold::is_cjk;
use crate::pattern::pattern;

static EXTENSIONS: WordList = WordList::new("spans.extensions");
static FILE_NAMES: WordList = WordList::new("spans.file_names");
/// Names with a dot that look like files and are not.
static PRODUCTS: WordList = WordList::new("spans.products");
/// Folders that paths begin with.
static TOP_FOLDERS: WordList = WordList::new("spans.top_folders");
/// Such folders that are also ordinary words, which prose puts before a slash.
static ALSO_WORDS: WordList = WordList::new("spans.also_words");
/// Commands of chat programs, which look like paths.
static SLASH_COMMANDS: WordList = WordList::new("spans.slash_commands");

static LINE: LazyLock<Regex> = LazyLock::new(|| pattern("line"));
static WINDOWS: LazyLock<Regex> = LazyLock::new(|| pattern("windows"));

/// Returns the length of the path at the beginning of `word`, line number included. In
/// backticks (`quoted`), more words are accepted as paths.
pub(super) fn path_len(word: &str, quoted: bool) -> Option<usize> {
    if word.len() < 2 || word.contains("://") {
        return None;
    }
    let (head, tail) = split_line(word);
    if !head.contains(char::is_alphanumeric) || !is_path(head, quoted) {
        return None;
    }
    Some(head.len() + tail)
}

/// Returns a path without its line number, and the length of the rest.
pub fn split_line(word: &str) -> (&str, usize) {
    if !word.contains([':', '#']) {
        return (word, 0);
    }
    let Some(found) = LINE.captures(word) else { return (word, 0) };
    let (_, [head, line]) = found.extract();
    let rest = word.slice(head.len()..);
    // `C#` is a name, `a.md#title` a part of a file.
    let is_name = rest.starts_with('#') && line.is_empty() && !rest.starts_with("#L");
    if is_name && !head.contains(['/', '.']) { (word, 0) } else { (head, line.len()) }
}

/// Whether a word begins as paths do on Windows alone: `C:\a`, `\\server\a`, `..\a`.
pub(crate) fn is_on_windows(word: &str) -> bool {
    WINDOWS.is_match(word)
}

fn is_path(word: &str, quoted: bool) -> bool {
    if word.contains('\\') || is_on_windows(word) {
        return is_on_windows(word) && word.len() > 3;
    }
    if !word.contains('/') {
        return is_file(word, quoted);
    }
    let rooted = word.starts_with('/');
    let inner = word.strip_prefix('/').unwrap_or(word);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() || !inner.split('/').all(is_name) {
        return false;
    }
    let last = inner.rsplit('/').next().unwrap_or_default();
    let homed = ["./", "../", "~/"].iter().any(|lead| word.starts_with(lead))
        || (word.starts_with('$') && word.get(1..2).is_some_and(|c| c != "/"));
    if homed || (is_file(last, false) && !PRODUCTS.contains(&last.to_ascii_lowercase())) {
        return true;
    }
    // Fractions, dates, ratios.
    if inner.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'%' | b'*' | b'/')) {
        return false;
    }
    if rooted { is_rooted(inner, quoted) } else { is_relative(inner, word.ends_with('/'), quoted) }
}

/// Whether the text after a slash is a system folder or a route, but not `/s` or `/compact`.
fn is_rooted(inner: &str, quoted: bool) -> bool {
    if let Some((first, rest)) = inner.split_once('/') {
        return first.chars().any(char::is_alphanumeric) && first.len() + rest.len() > 2;
    }
    if SLASH_COMMANDS.contains(inner) {
        return false;
    }
    quoted || inner.len() >= 3 && inner.bytes().all(|b| b.is_ascii_lowercase())
}

/// Whether it is a relative path like `src/auth` or `my-app/lib`; not `client/server`, `and/or`.
fn is_relative(inner: &str, is_folder: bool, quoted: bool) -> bool {
    let first = inner.split('/').next().unwrap_or_default();
    let last = inner.rsplit('/').next().unwrap_or_default();
    if BRANCH_PREFIXES.contains(first) || first.starts_with('@') {
        return false;
    }
    let count = inner.split('/').count();
    // `n/a`.
    if inner.len() == 3 {
        return false;
    }
    // `s/old/new/g` is a substitution.
    if matches!(first, "s" | "y") && count >= 3 && !is_file(last, false) {
        return false;
    }
    // `client/server` and `build/test` are more likely two words.
    if quoted || (TOP_FOLDERS.contains(first) && (count != 2 || !ALSO_WORDS.contains(first))) {
        return is_folder || count > 1;
    }
    match count {
        // `re-read/rewrite` is not a path, `my_app/lib` is.
        2 => {
            inner.contains(['_', '.', '*', '['])
                && !inner.contains(|c: char| c.is_ascii_uppercase())
        }
        _ => false,
    }
}

/// Whether a word is a file name on its own.
fn is_file(word: &str, quoted: bool) -> bool {
    let is_env = word.strip_prefix(".env.").is_some_and(|rest| !rest.is_empty());
    if is_env || FILE_NAMES.contains(word) {
        return true;
    }
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    if stem.is_empty() {
        return quoted && ending.len() >= 2 && ending.bytes().all(|b| b.is_ascii_lowercase());
    }
    ending.len() <= 8
        && EXTENSIONS.contains(&ending.to_ascii_lowercase())
        && is_name(word)
        && !PRODUCTS.contains(&word.to_ascii_lowercase())
        && !matches!(stem, "self" | "this" | "process" | "console")
}

fn is_name(segment: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "._-@+~*[]()$%#".contains(c) || is_cjk(c);
    !segment.is_empty() && segment.chars().all(is_part)
}
