//! Finds the files that tool calls read or modify.

use ctx_core::ToolCall;
use ctx_text::WordList;
use serde_json::{Map, Value};

use crate::arguments::strings;

/// What a call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Modify,
}

/// Tools that read a file: pi, Claude Code, Codex, OpenClaw, Gemini CLI, Cline.
static READING: WordList = WordList::new("tools.reading");

/// Tools that write a file.
static MODIFYING: WordList = WordList::new("tools.modifying");

/// Tools that do either, depending on `command`: Anthropic's text editor, goose.
static EDITORS: WordList = WordList::new("tools.editors");

/// Argument names for one or several paths.
static PATHS: WordList = WordList::new("arguments.paths");

const PATCH_BEGINS: &str = "*** Begin Patch";

/// Prefixes of paths in a patch.
const PATCH_LINES: [&str; 5] =
    ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/"];

/// Returns the files that a call modifies.
#[must_use]
pub fn modified_files(call: &ToolCall) -> Vec<String> {
    let files = touched(call).into_iter();
    files.filter(|(touch, _)| *touch == Touch::Modify).map(|(_, path)| path).collect()
}

/// Returns the files that a call names.
pub(super) fn touched(call: &ToolCall) -> Vec<(Touch, String)> {
    let name = call.name.as_str();
    let json = call.arguments.as_str();
    let is_patch = json.contains(PATCH_BEGINS);
    let reads = READING.contains(name);
    let modifies = MODIFYING.contains(name);
    let is_editor = EDITORS.contains(name);
    if !(reads || modifies || is_editor || is_patch) {
        return Vec::new();
    }
    let fields = serde_json::from_str::<Map<String, Value>>(json);
    if let (Ok(fields), true) = (&fields, reads || modifies || is_editor) {
        let views = fields.get("command").is_some_and(|command| command == "view");
        let touch = if reads || (is_editor && views) { Touch::Read } else { Touch::Modify };
        return paths(fields).into_iter().map(|path| (touch, path)).collect();
    }
    let patches = strings(json).into_iter().filter(|it| it.value.contains(PATCH_BEGINS));
    patches.flat_map(|it| patched(&it.value)).map(|path| (Touch::Modify, path)).collect()
}

fn paths(fields: &Map<String, Value>) -> Vec<String> {
    let values = PATHS.iter().filter_map(|key| fields.get(*key));
    let texts = values.flat_map(|value| match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<_>>(),
    });
    texts.map(str::to_owned).collect()
}

/// Returns the files that a patch names: `*** Update File: a`, `+++ b/a`.
pub(crate) fn patched(patch: &str) -> Vec<String> {
    let starts = |line| PATCH_LINES.iter().find_map(move |start| str::strip_prefix(line, start));
    patch.lines().filter_map(starts).map(|path| path.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use ctx_core::RawJson;

    use super::*;

    #[test]
    fn the_tools_of_many_agents_are_known() {
        let patch = r#"*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@\n-x\n+*** Add File: no\n*** Add File: c.rs\n+x\n*** End Patch"#;
        let cases = [
            ("read", r#"{"path":"a"}"#.to_owned(), vec![(Touch::Read, "a")]),
            ("edit", r#"{"path":"a","oldText":"b"}"#.to_owned(), vec![(Touch::Modify, "a")]),
            ("read", r#"{"path":7}"#.to_owned(), vec![]),
            ("Read", r#"{"file_path":"/a","limit":5}"#.to_owned(), vec![(Touch::Read, "/a")]),
            ("NotebookEdit", r#"{"notebook_path":"n"}"#.to_owned(), vec![(Touch::Modify, "n")]),
            ("read", r#"{"filePath":"/a"}"#.to_owned(), vec![(Touch::Read, "/a")]),
            (
                "read_many_files",
                r#"{"paths":["a","b"]}"#.to_owned(),
                vec![(Touch::Read, "a"), (Touch::Read, "b")],
            ),
            (
                "text_editor",
                r#"{"command":"view","path":"a"}"#.to_owned(),
                vec![(Touch::Read, "a")],
            ),
            (
                "str_replace_editor",
                r#"{"command":"create","path":"a"}"#.to_owned(),
                vec![(Touch::Modify, "a")],
            ),
            (
                "apply_patch",
                format!(r#"{{"input":"{patch}"}}"#),
                vec![
                    (Touch::Modify, "src/a.rs"),
                    (Touch::Modify, "src/b.rs"),
                    (Touch::Modify, "c.rs"),
                ],
            ),
            (
                "shell",
                format!(r#"{{"command":["apply_patch","{patch}"]}}"#),
                vec![
                    (Touch::Modify, "src/a.rs"),
                    (Touch::Modify, "src/b.rs"),
                    (Touch::Modify, "c.rs"),
                ],
            ),
            (
                "apply_patch",
                format!("\"{patch}\""),
                vec![
                    (Touch::Modify, "src/a.rs"),
                    (Touch::Modify, "src/b.rs"),
                    (Touch::Modify, "c.rs"),
                ],
            ),
            ("bash", r#"{"command":"cat a"}"#.to_owned(), vec![]),
            ("read", "not JSON".to_owned(), vec![]),
        ];
        for (name, arguments, expected) in cases {
            let call = ToolCall::new("c", name, RawJson::from_text(arguments));
            let found = touched(&call);
            let found: Vec<_> = found.iter().map(|(touch, path)| (*touch, &**path)).collect();
            assert_eq!(found, expected, "{name}");
        }
    }
}
