//! A simulated prompt cache: the part of a prompt that was sent before.

use std::collections::VecDeque;

/// Number of prompts kept.
const REMEMBERED: usize = 64;

/// The answered prompts, newest last, each with its model.
#[derive(Debug, Default)]
pub(super) struct PromptCache {
    seen: VecDeque<(String, String)>,
}

impl PromptCache {
    /// Returns the length in bytes of the longest prefix that `prompt` shares with an earlier
    /// prompt for the same model.
    pub(super) fn shared(&self, model: &str, prompt: &str) -> usize {
        let of_model = self.seen.iter().filter(|(m, _)| m == model);
        of_model.map(|(_, old)| common_prefix(old, prompt)).max().unwrap_or(0)
    }

    /// Adds a prompt.
    pub(super) fn keep(&mut self, model: &str, prompt: String) {
        if self.seen.len() == REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back((model.to_owned(), prompt));
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    const STRETCH: usize = 256;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Compares slices in large chunks, and the last chunk byte by byte.
    let strides = a.chunks(STRETCH).zip(b.chunks(STRETCH)).take_while(|(a, b)| a == b).count();
    let from = (strides * STRETCH).min(a.len()).min(b.len());
    let rest = a.iter().zip(b).skip(from).take_while(|(a, b)| a == b).count();
    from + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_common_prefix_of_the_same_model_counts() {
        let long = "x".repeat(1_000);
        let mut cache = PromptCache::default();
        cache.keep("m", "abc".to_owned());
        cache.keep("m", format!("{long}tail"));
        for (model, prompt, shared) in [
            ("m", "abd".to_owned(), 2),
            ("m", format!("{long}tall"), 1_002),
            ("m", format!("{long}tail and more"), 1_004),
            ("m", String::new(), 0),
            ("other", "abc".to_owned(), 0),
        ] {
            assert_eq!(cache.shared(model, &prompt), shared, "{prompt}");
        }
    }
}
