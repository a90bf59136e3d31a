//! Lists of known names: file extensions, folders, error codes, words that are not identifiers.

use crate::word_list::WordSet;

static EXTENSIONS: WordSet = WordSet::new("spans.extensions");
static FILE_NAMES: WordSet = WordSet::new("spans.file_names");
static PRODUCTS: WordSet = WordSet::new("spans.products");
/// Folders that paths begin with.
pub(super) static TOP_FOLDERS: WordSet = WordSet::new("spans.top_folders");
/// Such folders that are also ordinary words, which prose puts before a slash.
pub(super) static ALSO_WORDS: WordSet = WordSet::new("spans.also_words");
/// Folders at the root of a file system.
pub(super) static ROOT_FOLDERS: WordSet = WordSet::new("spans.root_folders");
/// Parts before the slash in branch names.
pub(super) static BRANCH_PREFIXES: WordSet = WordSet::new("spans.branch_prefixes");
/// Commands of chat programs, which look like paths.
pub(super) static SLASH_COMMANDS: WordSet = WordSet::new("spans.slash_commands");
/// Error symbols of the C library and of operating systems.
pub(super) static ERRNOS: WordSet = WordSet::new("spans.errnos");
static BRANDS: WordSet = WordSet::new("spans.brands");
static STANDARDS: WordSet = WordSet::new("spans.standards");
/// Words that are often in backticks without being names.
pub(super) static PLAIN_WORDS: WordSet = WordSet::new("spans.plain_words");
/// HTTP methods, which precede routes.
pub(super) static HTTP_VERBS: WordSet = WordSet::new("spans.http_verbs");
/// Top-level domains.
pub(super) static TOP_DOMAINS: WordSet = WordSet::new("spans.top_domains");

/// Whether it is a file extension.
pub(super) fn is_extension(ending: &str) -> bool {
    ending.len() <= 8 && EXTENSIONS.has(&ending.to_ascii_lowercase())
}

/// Whether it is a file name without an extension, or one that begins with a dot.
pub(super) fn is_file_name(name: &str) -> bool {
    FILE_NAMES.has(name) || name.strip_prefix(".env.").is_some_and(|rest| !rest.is_empty())
}

/// Whether it is a name with a dot that looks like a file and is not.
pub(super) fn is_product(name: &str) -> bool {
    PRODUCTS.has(&name.to_ascii_lowercase())
}

/// Whether a mixed-case word is the name of a product or format, not of code.
pub(super) fn is_brand(word: &str) -> bool {
    BRANDS.has(&word.to_ascii_lowercase())
}

/// Whether a word with a hyphen and a number names a standard, not an object.
pub(super) fn is_standard(word: &str) -> bool {
    STANDARDS.has(&word.to_ascii_lowercase())
}
