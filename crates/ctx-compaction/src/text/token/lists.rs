//! Lists of known names: file extensions, folders, error codes, words that are not identifiers.
//!
//! The lists are in `words.txt`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

type Set = HashSet<&'static str, foldhash::fast::FixedState>;
type Lists = HashMap<&'static str, Set, foldhash::fast::FixedState>;

static LISTS: LazyLock<Lists> = LazyLock::new(|| {
    let mut lists = Lists::default();
    let mut section = "";
    for line in
        include_str!("words.txt").lines().filter(|line| !line.starts_with("#") && !line.is_empty())
    {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => section = name,
            None => lists.entry(section).or_default().extend(line.split_whitespace()),
        }
    }
    lists
});

fn is_in(list: &str, word: &str) -> bool {
    LISTS.get(list).is_some_and(|list| list.contains(word))
}

fn is_in_any_case(list: &str, word: &str) -> bool {
    is_in(list, &word.to_ascii_lowercase())
}

/// Whether it is a file extension.
pub(super) fn is_extension(ending: &str) -> bool {
    ending.len() <= 8 && is_in_any_case("extensions", ending)
}

/// Whether it is a file name without an extension, or one that begins with a dot.
pub(super) fn is_file_name(name: &str) -> bool {
    is_in("file names", name) || name.strip_prefix(".env.").is_some_and(|rest| !rest.is_empty())
}

/// Whether it is a name with a dot that looks like a file and is not.
pub(super) fn is_product(name: &str) -> bool {
    is_in_any_case("products", name)
}

/// Whether paths begin with this folder.
pub(super) fn is_top_folder(name: &str) -> bool {
    is_in("top folders", name)
}

/// Whether such a folder is also an ordinary word that prose puts before a slash.
pub(super) fn is_also_a_word(folder: &str) -> bool {
    is_in("also a words", folder)
}

/// Whether it is a folder at the root of a file system.
pub(super) fn is_root_folder(name: &str) -> bool {
    is_in("root folders", name)
}

/// Whether it is the part before the slash in a branch name.
pub(super) fn is_branch_prefix(name: &str) -> bool {
    is_in("branch prefixs", name)
}

/// Whether it is a command of a chat program, which looks like a path.
pub(super) fn is_slash_command(name: &str) -> bool {
    is_in("slash commands", name)
}

/// Whether it is an error symbol of the C library or of an operating system.
pub(super) fn is_errno(word: &str) -> bool {
    is_in("errnos", word)
}

/// Whether the letters begin a compiler's or server's error code.
pub(super) fn is_error_prefix(letters: &str) -> bool {
    is_in("error prefixs", letters)
}

/// Whether a mixed-case word is the name of a product or format, not of code.
pub(super) fn is_brand(word: &str) -> bool {
    is_in_any_case("brands", word)
}

/// Whether a word with a hyphen and a number names a standard, not an object.
pub(super) fn is_standard(word: &str) -> bool {
    is_in_any_case("standards", word)
}

/// Whether it is a word that is often in backticks without being a name.
pub(super) fn is_plain_word(word: &str) -> bool {
    is_in("plain words", word)
}

/// Whether it is an HTTP method, which precedes a route.
pub(super) fn is_http_verb(word: &str) -> bool {
    is_in("http verbs", word)
}

/// Whether it is a top-level domain.
pub(super) fn is_top_domain(name: &str) -> bool {
    is_in("top domains", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_there() {
        for list in [
            "extensions",
            "file names",
            "products",
            "top folders",
            "also a words",
            "root folders",
            "branch prefixs",
            "slash commands",
            "errnos",
            "error prefixs",
            "brands",
            "standards",
            "plain words",
            "http verbs",
            "top domains",
        ] {
            assert!(LISTS.get(list).is_some_and(|list| !list.is_empty()), "{list}");
        }
        assert_eq!(LISTS.len(), 15);
    }
}
