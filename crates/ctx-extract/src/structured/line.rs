//! One item of a summary, with the entries it cites.

use std::fmt;

use ctx_core::EntryId;
use ctx_facts::citations;

/// An item of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryLine {
    /// Its words, without list marker and citations. Indented lines below it follow as further
    /// lines.
    pub text: String,
    /// The entries it cites, in order.
    pub cites: Vec<EntryId>,
}

impl SummaryLine {
    /// Parses the words and the citations at their end: `words [e:1] [e:2]`, also `[e:1, e:2]`.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Self {
        let mut rest = text.trim_end();
        let mut cites = Vec::new();
        for cited in citations(text).into_iter().rev() {
            if cited.range.end != rest.len() || cited.ids.is_empty() {
                break;
            }
            // The citations are parsed from the end.
            cites.extend(cited.ids.into_iter().rev().map(EntryId::from));
            rest = rest[..cited.range.start].trim_end();
        }
        cites.reverse();
        Self { text: rest.trim_start().to_owned(), cites }
    }
}

impl fmt::Display for SummaryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (n, cite) in self.cites.iter().enumerate() {
            let blank = if n == 0 && self.text.is_empty() { "" } else { " " };
            write!(f, "{blank}[e:{cite}]")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_at_the_end_are_taken_off_and_put_back() {
        for (text, words, cites, shown) in [
            ("done [e:1]", "done", vec!["1"], "done [e:1]"),
            ("a [e:1] [e:2]", "a", vec!["1", "2"], "a [e:1] [e:2]"),
            ("a [e:1][e:2, e:3] ", "a", vec!["1", "2", "3"], "a [e:1] [e:2] [e:3]"),
            ("a [e:1] b", "a [e:1] b", vec![], "a [e:1] b"),
            ("array[0]", "array[0]", vec![], "array[0]"),
            ("odd [e:]", "odd [e:]", vec![], "odd [e:]"),
            ("[e:9]", "", vec!["9"], "[e:9]"),
            ("完成 [e:0a]", "完成", vec!["0a"], "完成 [e:0a]"),
        ] {
            let line = SummaryLine::parse(text);
            assert_eq!(line.text, words);
            assert_eq!(line.cites.iter().map(|id| &**id).collect::<Vec<_>>(), cites, "{text}");
            assert_eq!(line.to_string(), shown);
        }
    }
}
