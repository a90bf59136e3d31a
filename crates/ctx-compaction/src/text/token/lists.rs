//! What is known by name: file endings, folders, error codes, words that are no identifiers.
//!
//! The lists stand in `words.txt`.

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

/// Whether files end in that.
pub(super) fn is_extension(ending: &str) -> bool {
    ending.len() <= 8 && is_in_any_case("extensions", ending)
}

/// File names without an ending, and those that begin with a dot.
pub(super) fn is_file_name(name: &str) -> bool {
    is_in("file names", name) || name.strip_prefix(".env.").is_some_and(|rest| !rest.is_empty())
}

/// Names with a dot that look like files and are not.
pub(super) fn is_product(name: &str) -> bool {
    is_in_any_case("products", name)
}

/// Folders that paths begin with.
pub(super) fn is_top_folder(name: &str) -> bool {
    is_in("top folders", name)
}

/// Of those, the ones that prose puts before a slash too.
pub(super) fn is_also_a_word(folder: &str) -> bool {
    is_in("also a words", folder)
}

/// Folders at the root of a file system.
pub(super) fn is_root_folder(name: &str) -> bool {
    is_in("root folders", name)
}

/// What stands before the slash in the name of a branch.
pub(super) fn is_branch_prefix(name: &str) -> bool {
    is_in("branch prefixs", name)
}

/// Commands of chat programs, which look like paths.
pub(super) fn is_slash_command(name: &str) -> bool {
    is_in("slash commands", name)
}

/// Symbols of the C library and of operating systems.
pub(super) fn is_errno(word: &str) -> bool {
    is_in("errnos", word)
}

/// Letters before the digits of a compiler's or server's error code.
pub(super) fn is_error_prefix(letters: &str) -> bool {
    is_in("error prefixs", letters)
}

/// Words in mixed case that are names of products or of formats, not of code.
pub(super) fn is_brand(word: &str) -> bool {
    is_in_any_case("brands", word)
}

/// Words with a hyphen and a number that name a standard, not a thing.
pub(super) fn is_standard(word: &str) -> bool {
    is_in_any_case("standards", word)
}

/// Words that anybody puts in backticks without naming anything.
pub(super) fn is_plain_word(word: &str) -> bool {
    is_in("plain words", word)
}

/// Verbs of HTTP, which stand before a route.
pub(super) fn is_http_verb(word: &str) -> bool {
    is_in("http verbs", word)
}

/// The last part of host names.
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
