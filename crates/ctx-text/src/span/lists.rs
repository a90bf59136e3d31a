//! Lists of known names: file extensions, folders, error codes, words that are not identifiers.

use crate::WordList;

static EXTENSIONS: WordList = WordList::new("spans.extensions");
static FILE_NAMES: WordList = WordList::new("spans.file_names");
/// Names with a dot that look like files and are not.
pub(super) static PRODUCTS: WordList = WordList::new("spans.products");
/// Folders that paths begin with.
pub(super) static TOP_FOLDERS: WordList = WordList::new("spans.top_folders");
/// Such folders that are also ordinary words, which prose puts before a slash.
pub(super) static ALSO_WORDS: WordList = WordList::new("spans.also_words");
/// Parts before the slash in branch names.
pub(super) static BRANCH_PREFIXES: WordList = WordList::new("spans.branch_prefixes");
/// Commands of chat programs, which look like paths.
pub(super) static SLASH_COMMANDS: WordList = WordList::new("spans.slash_commands");
/// Error symbols of the C library and of operating systems.
pub(super) static ERRNOS: WordList = WordList::new("spans.errnos");
/// Mixed-case names of products and formats.
pub(super) static BRANDS: WordList = WordList::new("spans.brands");
/// Names of standards, with a hyphen and a number.
pub(super) static STANDARDS: WordList = WordList::new("spans.standards");
/// Words that are often in backticks without being names.
pub(super) static PLAIN_WORDS: WordList = WordList::new("spans.plain_words");
/// Top-level domains.
pub(super) static TOP_DOMAINS: WordList = WordList::new("spans.top_domains");

/// Whether it is a file extension.
pub(super) fn is_extension(ending: &str) -> bool {
    ending.len() <= 8 && EXTENSIONS.contains(&ending.to_ascii_lowercase())
}

/// Whether it is a file name without an extension, or one that begins with a dot.
pub(super) fn is_file_name(name: &str) -> bool {
    FILE_NAMES.contains(name) || name.strip_prefix(".env.").is_some_and(|rest| !rest.is_empty())
}
