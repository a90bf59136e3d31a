//! Loads the rules of `rules.txt`.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::Regex;

use crate::facts::FactKind;

/// Whose messages a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    User,
    Assistant,
    All,
}

/// What a fact must contain besides the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Code,
    Number,
    Value,
}

/// One rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) kind: FactKind,
    pub(super) by: By,
    pub(super) needs: Needs,
    /// The text put before the fact.
    pub(super) prefix: String,
    /// The group `x` is the fact.
    pub(super) pattern: Regex,
}

/// All rules, and the matcher that finds candidate rules.
struct Table {
    rules: Vec<Rule>,
    /// The index of the rule that each anchor belongs to.
    owners: Vec<usize>,
    anchors: Option<AhoCorasick>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| read(include_str!("rules.txt")));

/// Returns the rules that have an anchor in the text, in order.
pub(super) fn candidates(text: &str) -> impl Iterator<Item = &'static Rule> {
    let mut found = vec![false; TABLE.rules.len()];
    let hits = TABLE.anchors.iter().flat_map(|anchors| anchors.find_overlapping_iter(text));
    for hit in hits {
        let owner = TABLE.owners.get(hit.pattern().as_usize());
        if let Some(seen) = owner.and_then(|&at| found.get_mut(at)) {
            *seen = true;
        }
    }
    TABLE.rules.iter().zip(found).filter_map(|(rule, found)| found.then_some(rule))
}

fn read(text: &str) -> Table {
    let (mut rules, mut owners, mut anchors) = (Vec::new(), Vec::new(), Vec::new());
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(head), Some(starts), Some(pattern)) = (lines.next(), lines.next(), lines.next())
    {
        // A test checks that the file is valid; an invalid row is skipped here.
        let Some(rule) = rule(head, pattern) else { continue };
        for anchor in starts.split('|') {
            owners.push(rules.len());
            anchors.push(anchor);
        }
        rules.push(rule);
    }
    let anchors = AhoCorasick::builder().ascii_case_insensitive(true).build(anchors).ok();
    Table { rules, owners, anchors }
}

fn rule(head: &str, pattern: &str) -> Option<Rule> {
    let (head, prefix) = head.split_once(" | ").unwrap_or((head, ""));
    let mut words = head.split(' ');
    let kind = FactKind::from_name(words.next()?)?;
    let by = match words.next()? {
        "user" => By::User,
        "assistant" => By::Assistant,
        "all" => By::All,
        _ => return None,
    };
    let needs = match words.next()? {
        "nothing" => Needs::Nothing,
        "code" => Needs::Code,
        "number" => Needs::Number,
        "value" => Needs::Value,
        _ => return None,
    };
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix} ") };
    Some(Rule { kind, by, needs, prefix, pattern: Regex::new(&ascii(pattern)).ok()? })
}

/// Restricts the character classes of a pattern to ASCII, which are small and fast. No rule depends
/// on other letters; non-ASCII characters in a pattern match themselves.
pub(super) fn ascii(pattern: &str) -> String {
    let ascii = pattern
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\w", "[0-9A-Za-z_]")
        .replace(r"\d", "[0-9]")
        .replace(r"\s", r"[\x20\t]")
        .replace(r"\S", r"[^\x20\t]");
    format!("(?i){ascii}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_and_names_the_fact() {
        let rows =
            include_str!("rules.txt").lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        assert_eq!(TABLE.rules.len() * 3, rows.count());
        assert!(TABLE.anchors.is_some() && TABLE.rules.len() > 40);
        for rule in &TABLE.rules {
            assert!(rule.pattern.capture_names().flatten().any(|name| name == "x"), "{rule:?}");
        }
    }
}
