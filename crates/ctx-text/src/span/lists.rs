//! Lists of known names: file extensions, folders, error codes, words that are not identifiers.

use crate::word_list::WordSet;

static EXTENSIONS: WordSet = WordSet::new("spans.extensions");
static FILE_NAMES: WordSet = WordSet::new("spans.file_names");
static PRODUCTS: WordSet = WordSet::new("spans.products");
static TOP_FOLDERS: WordSet = WordSet::new("spans.top_folders");
static ALSO_WORDS: WordSet = WordSet::new("spans.also_words");
static ROOT_FOLDERS: WordSet = WordSet::new("spans.root_folders");
static BRANCH_PREFIXES: WordSet = WordSet::new("spans.branch_prefixes");
static SLASH_COMMANDS: WordSet = WordSet::new("spans.slash_commands");
static ERRNOS: WordSet = WordSet::new("spans.errnos");
static ERROR_PREFIXES: WordSet = WordSet::new("spans.error_prefixes");
static BRANDS: WordSet = WordSet::new("spans.brands");
static STANDARDS: WordSet = WordSet::new("spans.standards");
static PLAIN_WORDS: WordSet = WordSet::new("spans.plain_words");
static HTTP_VERBS: WordSet = WordSet::new("spans.http_verbs");
static TOP_DOMAINS: WordSet = WordSet::new("spans.top_domains");

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

/// Whether paths begin with this folder.
pub(super) fn is_top_folder(name: &str) -> bool {
    TOP_FOLDERS.has(name)
}

/// Whether such a folder is also an ordinary word that prose puts before a slash.
pub(super) fn is_also_a_word(folder: &str) -> bool {
    ALSO_WORDS.has(folder)
}

/// Whether it is a folder at the root of a file system.
pub(super) fn is_root_folder(name: &str) -> bool {
    ROOT_FOLDERS.has(name)
}

/// Whether it is the part before the slash in a branch name.
pub(super) fn is_branch_prefix(name: &str) -> bool {
    BRANCH_PREFIXES.has(name)
}

/// Whether it is a command of a chat program, which looks like a path.
pub(super) fn is_slash_command(name: &str) -> bool {
    SLASH_COMMANDS.has(name)
}

/// Whether it is an error symbol of the C library or of an operating system.
pub(super) fn is_errno(word: &str) -> bool {
    ERRNOS.has(word)
}

/// Whether the letters begin a compiler's or server's error code.
pub(super) fn is_error_prefix(letters: &str) -> bool {
    ERROR_PREFIXES.has(letters)
}

/// Whether a mixed-case word is the name of a product or format, not of code.
pub(super) fn is_brand(word: &str) -> bool {
    BRANDS.has(&word.to_ascii_lowercase())
}

/// Whether a word with a hyphen and a number names a standard, not an object.
pub(super) fn is_standard(word: &str) -> bool {
    STANDARDS.has(&word.to_ascii_lowercase())
}

/// Whether it is a word that is often in backticks without being a name.
pub(super) fn is_plain_word(word: &str) -> bool {
    PLAIN_WORDS.has(word)
}

/// Whether it is an HTTP method, which precedes a route.
pub(super) fn is_http_verb(word: &str) -> bool {
    HTTP_VERBS.has(word)
}

/// Whether it is a top-level domain.
pub(super) fn is_top_domain(name: &str) -> bool {
    TOP_DOMAINS.has(name)
}
