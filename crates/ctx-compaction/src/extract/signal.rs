//! What a sentence does: reports, decides, asks, announces, chats.

use std::sync::LazyLock;

/// What a sentence does. Several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Signal {
    /// It says that something is finished.
    pub(super) done: bool,
    /// It says that something cannot go on.
    pub(super) blocked: bool,
    /// It decides, or says why.
    pub(super) decision: bool,
    /// It says what is to be done later.
    pub(super) next: bool,
    /// It asks.
    pub(super) question: bool,
    /// It says what the matter is, or why.
    pub(super) finding: bool,
    /// It demands or forbids.
    pub(super) demand: bool,
    /// It forbids, or leaves no choice.
    pub(super) strict: bool,
    /// It announces what the speaker does now.
    pub(super) announces: bool,
    /// It carries nothing: praise, greetings, "let me check".
    pub(super) chatter: bool,
}

impl Signal {
    pub(super) fn of(sentence: &str) -> Self {
        // Whoever says something worth keeping says it early.
        let head: String = sentence.chars().take(600).collect();
        let lower = head.to_lowercase().replace('’', "'");
        let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
        let question = lower.trim_end_matches(['*', '_', ')', '"', ' ']).ends_with(['?', '？'])
            || starts(bare, &words().asks);
        let announces = starts(bare, &words().announces);
        let next = has(&lower, &words().next).is_some();
        let done = !question && !announces && is_done(&lower, bare);
        let decision = !question && !announces && has(&lower, &words().decisions).is_some();
        let finding = !question && has(&lower, &words().findings).is_some();
        let blocked = !question && has(&lower, &words().blocked).is_some();
        let strict = has(&lower, &words().strict).is_some();
        let demand = strict || has(&lower, &words().demands).is_some();
        let carries = strict || done || decision || finding || blocked || next;
        let says_little = bare.chars().filter(|c| c.is_alphanumeric()).count() < 3;
        let chatter = announces || says_little || (!carries && starts(bare, &words().chatter));
        Self {
            done,
            blocked,
            decision,
            next,
            question,
            finding,
            demand,
            strict,
            announces,
            chatter,
        }
    }
}

/// The lists of `words.txt`.
struct Words {
    assents: Vec<&'static str>,
    fillers: Vec<&'static str>,
    asks: Vec<&'static str>,
    announces: Vec<&'static str>,
    chatter: Vec<&'static str>,
    done_first: Vec<&'static str>,
    done: Vec<&'static str>,
    not_yet: Vec<&'static str>,
    blocked: Vec<&'static str>,
    decisions: Vec<&'static str>,
    next: Vec<&'static str>,
    findings: Vec<&'static str>,
    demands: Vec<&'static str>,
    strict: Vec<&'static str>,
    praise: Vec<&'static str>,
}

fn words() -> &'static Words {
    static WORDS: LazyLock<Words> = LazyLock::new(|| {
        let text = include_str!("words.txt");
        let list = |name: &str| {
            let section = text.split("\n[").find_map(|section| {
                section.strip_prefix(name).and_then(|rest| rest.strip_prefix("]\n"))
            });
            let words = section.unwrap_or_default().split(['|', '\n']).map(str::trim);
            words.filter(|word| !word.is_empty()).collect()
        };
        Words {
            assents: list("assents"),
            fillers: list("fillers"),
            asks: list("asks"),
            announces: list("announces"),
            chatter: list("chatter"),
            done_first: list("done_first"),
            done: list("done"),
            not_yet: list("not_yet"),
            blocked: list("blocked"),
            decisions: list("decisions"),
            next: list("next"),
            findings: list("findings"),
            demands: list("demands"),
            strict: list("strict"),
            praise: list("praise"),
        }
    });
    &WORDS
}

/// A report of something finished: the word stands first, or nothing before it makes it a wish, a
/// condition or a denial.
fn is_done(lower: &str, bare: &str) -> bool {
    if starts(bare, &words().done_first) {
        return true;
    }
    let Some(at) = has(lower, &words().done) else { return false };
    let before = lower.get(..at).unwrap_or_default();
    has(before, &words().not_yet).is_none()
}

fn starts(bare: &str, list: &[&'static str]) -> bool {
    list.iter().any(|start| {
        bare.strip_prefix(start).is_some_and(|rest| {
            let latin = start.ends_with(|c: char| c.is_ascii_alphanumeric());
            !latin || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// Where the first of the words stands, as a word of its own.
fn has(lower: &str, list: &[&'static str]) -> Option<usize> {
    list.iter().filter_map(|word| find_word(lower, word)).min()
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find(word) {
        let start = from + at;
        let end = start + word.len();
        let joins = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let latin_start = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        let latin_end = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        let before = text.get(..start).and_then(|t| t.chars().next_back());
        let after = text.get(end..).and_then(|t| t.chars().next());
        if !((latin_start && joins(before)) || (latin_end && joins(after))) {
            return Some(start);
        }
        from = end;
    }
    None
}

/// A short message that praises or greets and asks for nothing.
pub(super) fn is_praise(text: &str) -> bool {
    let lower = text.to_lowercase();
    let signal = Signal::of(text);
    !signal.question && !signal.demand && has(&lower, &words().praise).is_some()
}

/// A message that only agrees, thanks or tells the agent to go on.
pub(super) fn is_assent(text: &str) -> bool {
    let bare = text.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    bare.chars().count() < 40
        && (words().assents.contains(&bare.as_str())
            || bare.split([',', '.', '!', ' ', '，', '。', '！', '、']).all(|word| {
                word.is_empty()
                    || words().assents.contains(&word)
                    || words().fillers.contains(&word)
            }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_told_apart() {
        for (sentence, what) in [
            ("Fixed the cache bug.", "done"),
            ("The login API now passes all tests.", "done"),
            ("It is not fixed yet.", "next"),
            ("This should be fixed.", ""),
            ("已修复登录问题。", "done"),
            ("还没有完成。", "next"),
            ("Let me check the tests.", "chatter"),
            ("Great!", "chatter"),
            ("让我看看。", "chatter"),
            ("I chose JWT over sessions because it is stateless.", "decision finding"),
            ("采用 Redis 而不是内存缓存，因为要跨进程。", "decision finding"),
            ("Should I push it?", "question"),
            ("需要我继续吗？", "question"),
            ("The root cause is a stale cache.", "finding"),
            ("I am waiting for your API key.", "blocked"),
            ("Don't touch main.rs.", "demand"),
            ("不要重启服务。", "demand"),
            ("Once it is done, tell me.", ""),
            ("Undone work.", ""),
        ] {
            let s = Signal::of(sentence);
            let found: Vec<&str> = [
                (s.done, "done"),
                (s.blocked, "blocked"),
                (s.decision, "decision"),
                (s.next, "next"),
                (s.question, "question"),
                (s.finding, "finding"),
                (s.demand && sentence.len() < 25, "demand"),
                (s.chatter, "chatter"),
            ]
            .into_iter()
            .filter_map(|(holds, name)| holds.then_some(name))
            .collect();
            let expected: Vec<&str> = what.split(' ').filter(|word| !word.is_empty()).collect();
            for word in &expected {
                assert!(found.contains(word), "{sentence}: {found:?}");
            }
            for word in ["done", "question", "chatter", "blocked"] {
                assert!(
                    expected.contains(&word) || !found.contains(&word),
                    "{sentence}: {found:?}"
                );
            }
        }
    }

    #[test]
    fn assent_is_no_ask() {
        for text in ["yes", "ok, continue", "Great!", "好的，继续", "go ahead", "wow", "yes please"]
        {
            assert!(is_assent(text), "{text}");
        }
        for text in ["A.", "yes, use pnpm", "fix it", "ls", "继续修登录"] {
            assert!(!is_assent(text), "{text}");
        }
    }
}
