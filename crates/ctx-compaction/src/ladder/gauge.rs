//! Measures a text for the model that will read it.

use ctx_core::{Chars, Counter, CounterKind, Message, Tokens};

use super::trim::trimmed;

/// Counts text with one counter, or with two and takes the larger count.
///
/// A session is counted with its profile's counter, which may be far too low for non-Latin scripts.
/// What must fit a model's window, and the cost of a call, must not be underestimated for these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gauge([Counter; 2]);

impl Gauge {
    /// Counts with `counter` alone.
    pub(crate) fn by(counter: Counter) -> Self {
        Self([counter; 2])
    }

    /// Counts with `counter` and with `cjk`, and takes the larger count.
    pub(crate) fn for_models(counter: Counter) -> Self {
        Self([counter, Counter::new(CounterKind::Cjk)])
    }

    pub(crate) fn text(&self, text: &str) -> Tokens {
        self.largest(|counter| counter.text(text))
    }

    pub(crate) fn message(&self, message: &Message) -> Tokens {
        self.largest(|counter| counter.message(message))
    }

    /// Returns the maximum UTF-16 units in a text of `tokens` tokens.
    pub(crate) fn most_chars(&self, tokens: Tokens) -> Chars {
        let [first, second] = self.0.map(|counter| counter.most_chars(tokens));
        first.min(second)
    }

    /// Truncates the text to at most `max` tokens, replacing its middle with `notice` if necessary.
    pub(crate) fn without_middle(&self, text: &str, notice: &str, max: Tokens) -> String {
        self.cut(text, |text, counter| counter.truncate_middle(text, notice, max))
    }

    /// Trims the text to at most `max` tokens by removing the last lines of the longest sections.
    pub(crate) fn trimmed(&self, text: &str, max: Tokens) -> String {
        self.cut(text, |text, counter| trimmed(text, max, counter))
    }

    fn largest(&self, count: impl Fn(&Counter) -> Tokens) -> Tokens {
        let [first, second] = &self.0;
        let size = count(first);
        if first == second { size } else { size.max(count(second)) }
    }

    /// Applies `cut` with one counter, then with the other to the result.
    fn cut(&self, text: &str, cut: impl Fn(&str, &Counter) -> String) -> String {
        let [first, second] = &self.0;
        let (mut first, mut second) = (first, second);
        if first == second {
            return cut(text, first);
        }
        if second.text(text) > first.text(text) {
            (first, second) = (second, first);
        }
        cut(&cut(text, first), second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_count_holds_and_what_is_cut_fits_both() {
        let texts = [
            "plain words of a long talk\n".repeat(400),
            "用户要求修复重试循环\n".repeat(400),
            format!("{}\n## 目标\n{}", "plain words\n".repeat(300), "修复循环\n".repeat(300)),
        ];
        for &kind in CounterKind::ALL {
            let gauge = Gauge::for_models(Counter::new(kind));
            for text in &texts {
                let counters = [Counter::new(kind), Counter::new(CounterKind::Cjk)];
                let sizes = counters.map(|counter| counter.text(text));
                assert_eq!(gauge.text(text), sizes[0].max(sizes[1]));
                for max in [Tokens(0), Tokens(40), Tokens(500)] {
                    for cut in [gauge.without_middle(text, "[cut]", max), gauge.trimmed(text, max)]
                    {
                        assert!(gauge.text(&cut) <= max, "{kind} {max}: {cut}");
                        assert!(max < Tokens(40) || gauge.text(&cut) > max.scale(0.4), "{cut}");
                    }
                }
            }
        }
    }
}
