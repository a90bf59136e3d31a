//! Checks that a model's facts are grounded in the messages.

use std::collections::HashSet;

use ctx_text::is_cjk;

/// The words of the messages, to check numbers, paths and names of code.
#[derive(Debug, Default)]
pub(super) struct Grounds {
    words: HashSet<String>,
}

impl Grounds {
    pub(super) fn add(&mut self, text: &str) {
        for word in text.split(is_gap).map(bare) {
            // The last part of a path also names the file, and `port=3000` contains both words.
            self.words.extend(parts(&word).map(str::to_owned));
            self.words.insert(word);
        }
    }

    /// Returns the first number, path or name in a note that is not in the messages.
    pub(super) fn missing(&self, note: &str) -> Option<String> {
        let checked = note.split(is_gap).filter(|word| is_checked(word)).map(bare);
        checked.filter(|word| !word.is_empty()).find(|word| !self.holds(word))
    }

    /// Whether the messages hold a word, or all its parts: a number with its unit, a path with fewer
    /// or more of its folders.
    fn holds(&self, word: &str) -> bool {
        self.words.contains(word) || parts(word).all(|part| self.words.contains(part))
    }
}

fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(['/', '=', ':', '.', ',', '-', '_', '@', '#']).filter(|part| !part.is_empty())
}

fn is_gap(c: char) -> bool {
    c.is_whitespace() || is_cjk(c) || "`\"'()[]{}<>;|“”’→，。：；、（）".contains(c)
}

fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Whether a word must be grounded.
fn is_checked(word: &str) -> bool {
    let word = word.trim_matches(['.', ',', ':', '!', '?']);
    let digits = word.contains(|c: char| c.is_ascii_digit());
    let path = word.contains('/') && word.len() > 3;
    let name = word.contains('_') || word.contains("::") || word.ends_with("()");
    let mut pairs = word.as_bytes().windows(2);
    let humps = pairs.any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    digits || path || name || humps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_paths_and_names_must_be_in_the_messages() {
        let mut grounds = Grounds::default();
        grounds.add("The server in `src/api/server.ts` listens on port=3000 (30s timeout), call getUser(). 端口8080。");
        for said in [
            "Server listens on port 3000",
            "server.ts has getUser()",
            "api/server.ts times out after 30s",
            "端口8080",
            "Use plain words",
        ] {
            assert_eq!(grounds.missing(said), None, "{said}");
        }
        for (made_up, word) in [
            ("Server listens on port 8000", "8000"),
            ("It lives in src/db/pool.ts", "src/db/pool.ts"),
            ("Calls getUsers()", "getusers"),
            ("Set MAX_RETRIES", "max_retries"),
        ] {
            assert_eq!(grounds.missing(made_up).as_deref(), Some(word));
        }
    }
}
