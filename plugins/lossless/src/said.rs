//! The content of a message, as the input of a summary.

use ctx_engine_sdk::Row;
use ctx_engine_sdk::protocol::Block;

/// Maximum number of bytes read of a message. Of a longer message, both ends are read.
const MOST_READ: usize = 16 * 1024;

/// Tool arguments that name a file.
const FILE_ARGUMENTS: [&str; 5] = ["path", "file_path", "filePath", "file", "filename"];

/// The content of one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// The entry, in citation form.
    pub(crate) cited: String,
    /// The role.
    pub(crate) role: String,
    /// The text.
    pub(crate) text: String,
    /// The called tools, each with the file it is called on, if any.
    pub(crate) calls: Vec<(String, Option<String>)>,
    /// Whether a tool failed.
    pub(crate) failed: bool,
}

impl Content {
    /// Reads a row. The content of an unreadable row is empty.
    pub(crate) fn of(row: &Row) -> Self {
        let mut content =
            Self { cited: cite(&row.id), role: clean_line(&row.role), ..Self::default() };
        let Ok(Some(message)) = row.parsed() else { return content };
        content.text = ends(&message.plain_text(), MOST_READ);
        for block in message.blocks {
            match block {
                Block::ToolCall { name, arguments, .. } => {
                    let file = FILE_ARGUMENTS.iter().find_map(|key| arguments.get(key)?.as_str());
                    let file = file.map(|file| clip(&clean_line(file), 200));
                    content.calls.push((clip(&clean_line(&name), 60), file));
                }
                Block::ToolResult { is_error, .. } => content.failed |= is_error,
                _ => {}
            }
        }
        content
    }
}

/// Returns an id in citation form. A random UUID is shortened to its first eight digits. Other ids
/// are not shortened, because several may have the same beginning.
pub(crate) fn cite(id: &str) -> String {
    let is_random = id.len() == 36 && id.as_bytes().get(14) == Some(&b'4');
    let id = if is_random { id.get(..8).unwrap_or(id) } else { id };
    id.chars().filter(|c| !c.is_control() && !c.is_whitespace() && !"[]".contains(*c)).collect()
}

/// Returns the texts between `[e:` and `]`, each with its start and end.
pub(crate) fn citations(text: &str) -> Vec<(usize, usize, &str)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = text.get(from..).and_then(|rest| rest.find("[e:")).map(|at| from + at) {
        from = start + 3;
        let Some(rest) = text.get(from..) else { break };
        let Some(len) = rest.find([']', '[', '\n']) else { break };
        if rest.as_bytes().get(len) == Some(&b']') {
            found.push((start, from + len + 1, &rest[..len]));
        }
        from += len;
    }
    found
}

/// Returns a text as one line, without control characters and repeated spaces.
pub(crate) fn clean_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(512));
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns the beginning of a text, at most `bytes` long.
pub(crate) fn clip(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = floor(text, bytes.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

/// Returns a text, or the beginning and the end of a text that is longer than `bytes`.
pub(crate) fn ends(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = floor(text, bytes / 3 * 2);
    let tail = floor(text, text.len() - bytes / 3);
    format!("{}\n…\n{}", &text[..head], &text[tail..])
}

/// Returns the last character boundary up to `at`.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let text = "日本語のテキスト".repeat(40);
        for bytes in 0..80 {
            assert!(clip(&text, bytes).len() <= bytes.max('…'.len_utf8()));
            assert!(ends(&text, bytes).len() <= bytes + "\n…\n".len() + 3);
        }
    }

    #[test]
    fn only_citations_are_found() {
        let text = "a [e:1] b [e:] [e:é]\n[e:open\n[e:[e:2] [e:";
        let found: Vec<&str> = citations(text).into_iter().map(|(_, _, id)| id).collect();
        assert_eq!(found, ["1", "", "é", "2"]);
        for (start, end, id) in citations(text) {
            assert_eq!(&text[start..end], format!("[e:{id}]"));
        }
    }

    #[test]
    fn only_random_uuids_are_cited_by_their_beginning() {
        assert_eq!(cite("6f9619ff-8b86-4011-b42d-00c04fc964ff"), "6f9619ff");
        let ordered = "018f9619-8b86-7011-b42d-00c04fc964ff";
        assert_eq!(cite(ordered), ordered);
        assert_eq!(cite("a\n] b[ü"), "abü");
    }
}
