//! Regular expressions from a data file.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

/// Returns the expression `name` of `words/patterns.toml`. It has to exist.
pub(crate) fn pattern(name: &str) -> Regex {
    static ALL: LazyLock<toml::Table> =
        LazyLock::new(|| include_str!("../words/patterns.toml").parse().unwrap_or_default());
    let text = ALL.get(name).and_then(toml::Value::as_str);
    let text = text.expect("a static of this crate names the pattern, and a test reads them all");
    RegexBuilder::new(text).ignore_whitespace(true).build().expect("a test compiles all patterns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_is_used_once() {
        let file: toml::Table = include_str!("../words/patterns.toml").parse().unwrap();
        let folders = ["span", "output"];
        let folders = folders.map(|name| format!("{}/src/{name}", env!("CARGO_MANIFEST_DIR")));
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let source = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        let source: String = source.collect();
        for name in file.keys() {
            pattern(name);
            assert_eq!(source.matches(&format!("pattern(\"{name}\")")).count(), 1, "{name}");
        }
        assert_eq!(source.matches("pattern(\"").count(), file.len());
    }
}
