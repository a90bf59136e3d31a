//! Classifies a sentence: report, decision, question, announcement, small talk.

use super::cues::{Found, List};
use super::marks::Marks;
use super::step::is_step;
use crate::WordList;

/// Words that agree, and words that may stand beside them.
static ASSENTS: WordList = WordList::new("signals.assents");
static FILLERS: WordList = WordList::new("signals.fillers");

/// The classes of a sentence. Several may apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signal {
    /// It says that something is finished.
    pub done: bool,
    /// It begins with a word of finished work: "added".
    pub done_first: bool,
    /// It says that something is blocked.
    pub blocked: bool,
    /// It decides, or gives a reason.
    pub decision: bool,
    /// It says what will be done later.
    pub next: bool,
    /// It says that something is postponed, and so stays open.
    pub put_off: bool,
    /// It asks.
    pub question: bool,
    /// It states a finding or a reason.
    pub finding: bool,
    /// It names the root cause.
    pub causes: bool,
    /// It demands or forbids.
    pub demand: bool,
    /// It forbids, or leaves no choice.
    pub strict: bool,
    /// It announces what the speaker does next.
    pub announces: bool,
    /// It has no content: praise, greetings, "let me check".
    pub chatter: bool,
    /// Its other classes.
    pub marks: Marks,
}

impl Signal {
    /// Classifies a sentence.
    #[must_use]
    pub fn of(sentence: &str) -> Self {
        let found = Found::of(sentence);
        let lower = &*found.lower;
        let question = lower.trim_end_matches(['*', '_', ')', '"', ' ']).ends_with(['?', '？'])
            || found.opens(List::Asks);
        // "I will do that later" announces nothing for now.
        let put_off = !question && (found.has(List::PutOff) || ends_later(lower));
        let announces = found.opens(List::Announces) && !put_off;
        // A report: a word like "fixed" comes first, or no word before it makes the sentence a
        // wish, a condition or a denial.
        let reports = found.opens(List::DoneFirst)
            || (found.has(List::Done) && !found.precedes(List::NotYet, List::Done));
        let done = reports && !question && !announces;
        let decision = found.has(List::Decisions) && !question && !announces;
        let finding = found.has(List::Findings) && !question;
        let blocked = found.has(List::Blocked) && !question;
        let next = found.has(List::Next) || put_off;
        // "They are never delivered" describes, and demands nothing.
        let marks = Marks::of(&found);
        let strict = found.has(List::Strict) && marks.constraint;
        let wished = found.has(List::Demands) && !is_step(sentence);
        let carries = strict || done || decision || finding || blocked || next;
        let says_little = lower.chars().filter(|c| c.is_alphanumeric()).nth(2).is_none();
        Self {
            done,
            done_first: found.opens(List::DoneFirst),
            blocked,
            decision,
            next,
            put_off,
            question,
            finding,
            causes: found.has(List::Causes),
            demand: strict || wished,
            strict,
            announces,
            chatter: announces || says_little || (found.opens(List::Chatter) && !carries),
            marks,
        }
    }
}

/// "We'll look at that later": a postponement, not a statement about a later time.
fn ends_later(lower: &str) -> bool {
    static BEFORE: WordList = WordList::new("signals.before_later");
    let end = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
    end.ends_with(" later") && BEFORE.is_in(end)
}

/// Whether a message only agrees, thanks or tells the agent to continue.
pub fn is_assent(text: &str) -> bool {
    let bare = text.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    bare.chars().count() < 40
        && (ASSENTS.contains(&bare)
            || bare
                .split([',', '.', '!', ' ', '，', '。', '！', '、'])
                .all(|word| word.is_empty() || ASSENTS.contains(word) || FILLERS.contains(word)))
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
    fn what_never_happens_is_no_demand() {
        assert!(!Signal::of("A few jobs are never delivered.").demand);
        assert!(Signal::of("Never deliver them twice.").strict);
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
