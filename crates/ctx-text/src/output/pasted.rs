//! Detects errors and logs that were pasted into a message.

use super::cause::is_logged;

/// The maximum number of lines of one pasted error, its first line included.
const LONGEST: u8 = 40;

/// Detects pasted lines in a text, line by line: lines of a log or an error, and their
/// continuations, which are indented or within open braces.
#[derive(Debug, Default)]
pub(crate) struct Pasted {
    open: i32,
    left: u8,
}

impl Pasted {
    /// Whether the next line was pasted.
    pub(crate) fn holds(&mut self, line: &str) -> bool {
        let bare = line.trim();
        let begins = is_logged(line) || bare.starts_with("Error:");
        if begins {
            (self.open, self.left) = (0, LONGEST);
        }
        let indented = line.starts_with([' ', '\t']) && !bare.starts_with(['-', '*', '•']);
        let goes_on = self.left > 0 && !bare.is_empty() && (indented || self.open > 0);
        if !begins && !goes_on {
            *self = Self::default();
            return false;
        }
        for c in bare.chars() {
            self.open += i32::from(c == '{') - i32::from(c == '}');
        }
        self.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_pasted_with_the_lines_it_goes_on_over() {
        for (text, left) in [
            (
                "so\nError: 400 {\"message\":\"each\n call must have\n a result\"}\nNever do that.",
                &["so", "Never do that."][..],
            ),
            ("Error: 400 {\"message\":\"each\ncall must have\na result\"}\nend", &["end"]),
            ("ERROR no room\n- never retry\n  - nor wait", &["- never retry", "  - nor wait"]),
            ("TypeError: x\n\n  indented words", &["", "  indented words"]),
            ("  indented words\nof prose", &["  indented words", "of prose"]),
            ("warning: unused }}}\nprose", &["prose"]),
        ] {
            let mut pasted = Pasted::default();
            let found: Vec<&str> = text.lines().filter(|line| !pasted.holds(line)).collect();
            assert_eq!(found, left, "{text}");
        }
        let mut pasted = Pasted::default();
        let endless = format!("Error: {{\n{}", "x\n".repeat(1_000));
        assert!(endless.lines().filter(|line| !pasted.holds(line)).count() > 900);
    }
}
