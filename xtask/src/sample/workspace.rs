//! The files of the invented project, as the agent's tools see them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::script::Script;

/// All files by path, and what they were at the last commit.
#[derive(Clone)]
pub(crate) struct Workspace {
    files: BTreeMap<String, String>,
    committed: BTreeMap<String, String>,
}

impl Workspace {
    pub(crate) fn new() -> Self {
        let script = Script::new(include_str!("../../assets/tidemark.script"));
        let files: BTreeMap<_, _> =
            script.map(|file| (file.arguments.to_owned(), file.body.to_owned())).collect();
        Self { committed: files.clone(), files }
    }

    /// The text of a file. A path that is not there is a slip of the story, and shows in it.
    pub(crate) fn text(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    pub(crate) fn write(&mut self, path: &str, text: String) {
        self.files.insert(path.to_owned(), text);
    }

    /// Replaces the one place where `old` stands; an error where it does not.
    pub(crate) fn edit(&mut self, path: &str, old: &str, new: &str) -> Result<(), String> {
        let text = self.text(path);
        match text.matches(old).count() {
            1 => {
                let changed = text.replacen(old, new, 1);
                self.write(path, changed);
                Ok(())
            }
            0 => Err(format!(
                "Could not find the exact text in {path}. The old text must match exactly including \
                 all whitespace and newlines."
            )),
            n => Err(format!(
                "Found {n} occurrences of the text in {path}. The text must be unique. Please \
                 provide more context to make it unique."
            )),
        }
    }

    /// Replaces every `old`, as `sed -i` does.
    pub(crate) fn replace_all(&mut self, path: &str, old: &str, new: &str) {
        let changed = self.text(path).replace(old, new);
        self.write(path, changed);
    }

    /// `path:line: text` for each line under `under` that holds `needle`.
    pub(crate) fn grep(&self, needle: &str, under: &str) -> String {
        let mut out = String::new();
        for (path, text) in self.files.iter().filter(|(path, _)| path.starts_with(under)) {
            for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains(needle))
            {
                let _ = writeln!(out, "{path}:{}: {}", number + 1, line.trim());
            }
        }
        if out.is_empty() { "No matches found".to_owned() } else { out }
    }

    /// The number of the first line of `path` that holds `needle`, and the line.
    pub(crate) fn line(&self, path: &str, needle: &str) -> (usize, &str) {
        let found = self.text(path).lines().enumerate().find(|(_, line)| line.contains(needle));
        found.map_or((1, ""), |(at, line)| (at + 1, line))
    }

    /// Every test below `under`, in cargo's spelling.
    pub(crate) fn tests(&self, under: &str) -> Vec<String> {
        let mut tests = Vec::new();
        for (path, text) in self.files.iter().filter(|(path, _)| path.starts_with(under)) {
            // A test of a file in `tests/` stands in no module.
            let module = path.strip_prefix("src/").map_or(String::new(), |file| {
                let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
                format!("{}::tests::", module.replace('/', "::"))
            });
            let mut marked = false;
            for line in text.lines().map(str::trim) {
                if marked && let Some((_, rest)) = line.split_once("fn ") {
                    let name = rest.split('(').next().unwrap_or(rest);
                    tests.push(format!("{module}{name}"));
                }
                marked = matches!(line, "#[test]" | "#[tokio::test]")
                    || line.starts_with("#[tokio::test(");
            }
        }
        tests
    }

    /// Files that differ from the last commit: path, old text, new text.
    pub(crate) fn changes(&self) -> Vec<(&str, &str, &str)> {
        self.files
            .iter()
            .map(|(path, now)| {
                (path.as_str(), self.committed.get(path).map_or("", String::as_str), now.as_str())
            })
            .filter(|(_, old, now)| old != now)
            .collect()
    }

    pub(crate) fn commit(&mut self) {
        self.committed = self.files.clone();
    }

    /// Undoes all since the last commit.
    pub(crate) fn restore(&mut self) {
        self.files = self.committed.clone();
    }
}
