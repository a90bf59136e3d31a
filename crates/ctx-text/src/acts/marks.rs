//! Classifies a sentence: constraint, decision, question, completed or planned work, error.
//!
//! The rules are the word lists `cues.*`, matched in one pass. The speaker is
//! not known here: "we chose X" is a decision from any speaker, but "never do X" is a constraint
//! only from a user.

use crate::WordList;
use ctx_core::text::{Slice, head, tail};
use std::collections::BTreeMap;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use ctx_core::Chars;

use super::step::is_asked_about;
use crate::fold::is_cjk;

/// Words that may precede the verb at the beginning of a sentence.
static BEFORE_VERB: WordList = WordList::new("request.before_verb");
/// The same in languages without spaces.
static BEFORE_VERB_ANYWHERE: WordList = WordList::new("request.before_verb_anywhere");

/// The classes of a sentence. Several may apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It demands or forbids: "never", "must", "不要".
    pub constraint: bool,
    /// It applies permanently: "from now on", "以后".
    pub standing: bool,
    /// It withdraws something: "never mind", "算了".
    pub revokes: bool,
    /// It decides: "we'll go with", "决定".
    pub decision: bool,
    /// It contrasts two things: "instead of", "而不是".
    pub contrast: bool,
    /// It asks, or says that something is open.
    pub question: bool,
    /// It reports an error.
    pub error: bool,
    /// It asks for work: "please", "add", "帮我".
    pub request: bool,
    /// It doubts, supposes, announces a step, advises or greets: it states nothing that lasts.
    pub tentative: bool,
}

/// A word or phrase of one list.
struct Cue {
    section: usize,
    begins_clause: bool,
    takes_back: bool,
}

struct Cues {
    finder: AhoCorasick,
    /// For each pattern, its sections.
    of: Vec<Vec<Cue>>,
}

/// The lists of cues, in the order of the fields of [`Marks`]. `^cue` counts only at the beginning of a
/// clause, `!cue` cancels the cues inside it.
static SECTIONS: [WordList; 9] = [
    WordList::new("cues.constraint"),
    WordList::new("cues.standing"),
    WordList::new("cues.revokes"),
    WordList::new("cues.decision"),
    WordList::new("cues.contrast"),
    WordList::new("cues.question"),
    WordList::new("cues.error"),
    WordList::new("cues.request"),
    WordList::new("cues.tentative"),
];
const CONSTRAINT: usize = 0;

static CUES: LazyLock<Option<Cues>> = LazyLock::new(|| {
    let mut by_words: BTreeMap<&str, Vec<Cue>> = BTreeMap::new();
    for (section, cues) in SECTIONS.iter().enumerate() {
        for cue in cues.iter() {
            let words = cue.trim_start_matches(['^', '!']);
            by_words.entry(words).or_default().push(Cue {
                section,
                begins_clause: cue.starts_with('^'),
                takes_back: cue.starts_with('!'),
            });
        }
    }
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(by_words.keys()).ok()?;
    Some(Cues { finder, of: by_words.into_values().collect() })
});

/// The length of a sentence that is examined; the beginning is enough to classify it.
const LONGEST: Chars = Chars(2_000);

/// Classifies a sentence.
pub fn marks(sentence: &str) -> Marks {
    let asks = sentence.trim_end_matches(['"', '\'', ')', '”', '*', '`', ' ', '）']);
    let asks = asks.ends_with(['?', '？', '吗', '呢', '么']);
    let sentence = head(sentence, LONGEST);
    let plain;
    let sentence = if sentence.contains('’') {
        plain = sentence.replace('’', "'");
        &plain
    } else {
        sentence
    };
    let Some(cues) = CUES.as_ref() else { return Marks::default() };
    let mut has = [false; SECTIONS.len()];
    let mut found: Vec<(&Cue, usize, usize)> = Vec::new();
    for hit in cues.finder.find_overlapping_iter(sentence) {
        if !is_whole(sentence, hit.start(), hit.end()) {
            continue;
        }
        let clause = std::cell::LazyCell::new(|| begins_clause(sentence, hit.start()));
        let asked = std::cell::LazyCell::new(|| is_asked_about(sentence, hit.start()));
        for cue in cues.of.get(hit.pattern().as_usize()).into_iter().flatten() {
            if cue.section == CONSTRAINT && !cue.takes_back && *asked {
                continue;
            }
            if !cue.begins_clause || *clause {
                found.push((cue, hit.start(), hit.end()));
            }
        }
    }
    // A match inside one that cancels it does not count. Both lists are ordered by end, so it is
    // enough to look ahead over the few that overlap.
    for (index, &(cue, start, end)) in found.iter().enumerate() {
        let taken = |from: &[(&Cue, usize, usize)]| {
            from.iter().any(|&(other, s, e)| {
                other.takes_back && other.section == cue.section && s <= start && end <= e
            })
        };
        let (near_start, near_end) = (index.saturating_sub(8), (index + 9).min(found.len()));
        if !cue.takes_back && !found.get(near_start..near_end).is_some_and(taken) {
            has[cue.section] = true;
        }
    }
    let [constraint, standing, revokes, decision, contrast, question, error, request, tentative] =
        has;
    let question = question || asks;
    Marks { constraint, standing, revokes, decision, contrast, question, error, request, tentative }
}

/// Whether a match in letters is a whole word.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let word = |c: char| (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '_' | '-' | '/');
    let cue = text.slice(start..end);
    let before = text.get(..start).and_then(|t| t.chars().next_back());
    let after = text.get(end..).and_then(|t| t.chars().next());
    let opens = cue.chars().next().is_some_and(word);
    let closes = cue.chars().next_back().is_some_and(word);
    let goes_on = |c: char| word(c) || c == '\'';
    !(opens && before.is_some_and(word) || closes && after.is_some_and(goes_on))
}

/// Whether a clause begins at `at`: at the start, after punctuation, or after an introductory word.
fn begins_clause(text: &str, at: usize) -> bool {
    // One preceding word is enough.
    let before = tail(text.slice(..at), Chars(32));
    let before = before.trim_end_matches([' ', '*', '_']);
    let Some(last) = before.chars().next_back() else { return true };
    if !last.is_alphanumeric() && !matches!(last, '\'' | '`' | '/') {
        return true;
    }
    let word =
        before.rsplit(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    // "locally use it", "definitely never".
    let adverb = word.len() > 4 && word.ends_with("ly");
    adverb
        || BEFORE_VERB.contains(&word.to_ascii_lowercase().as_str())
        || BEFORE_VERB_ANYWHERE.iter().any(|lead| before.ends_with(lead))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(marks: Marks) -> Vec<&'static str> {
        let Marks {
            constraint,
            standing,
            revokes,
            decision,
            contrast,
            question,
            error,
            request,
            tentative,
        } = marks;
        let all = [
            ("constraint", constraint),
            ("standing", standing),
            ("revokes", revokes),
            ("decision", decision),
            ("contrast", contrast),
            ("question", question),
            ("error", error),
            ("request", request),
            ("tentative", tentative),
        ];
        all.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect()
    }

    #[test]
    fn sentences_say_what_they_are() {
        for (sentence, has, has_not) in [
            ("Never commit to main.", "constraint", ""),
            ("Please don't touch src/main.rs", "constraint", ""),
            ("I don’t want any new dependencies.", "constraint", ""),
            ("Use pnpm, not npm.", "constraint", ""),
            ("No emojis.", "constraint", ""),
            ("I read it, good, keep it.", "", "constraint"),
            ("Keep it.", "constraint", ""),
            ("You read it once instead of up to three times", "", "constraint"),
            ("结果全都落在公元五万年以后。", "", "standing"),
            ("它把毫秒当成了秒", "", "request"),
            ("把毫秒改成秒", "request", ""),
            ("The API must stay backwards compatible", "constraint", ""),
            ("I don't know why it fails.", "error", "constraint"),
            ("No problem.", "", "constraint"),
            ("The only file is a.rs", "", "constraint"),
            ("From now on always answer in German.", "standing", ""),
            ("不要重启服务", "constraint", ""),
            ("别动配置文件", "constraint", ""),
            ("这个级别的日志很多", "", "constraint"),
            ("必须用 Python 3.11", "constraint", ""),
            ("请用中文回答", "constraint", ""),
            ("以后都用 pnpm", "standing", ""),
            ("Never mind, use npm instead.", "revokes", ""),
            ("算了,还是用 MySQL 吧", "revokes", ""),
            ("We decided to use SQLite because it needs no server.", "decision", ""),
            ("我们决定采用 Redis,因为更快", "decision", ""),
            ("Should we support Windows?", "question", ""),
            ("要不要支持 Windows?", "question", ""),
            ("The build failed.", "error", ""),
            ("Add a retry to the client", "request", ""),
            ("帮我修复登录", "request", ""),
            ("The address is broken", "error", "request"),
            ("Maybe we should use Redis.", "tentative", ""),
            ("For now, set it to 5.", "tentative", ""),
            ("也许可以采用 Redis", "tentative", ""),
            ("We use Redis.", "", "tentative"),
        ] {
            let found = named(marks(sentence));
            assert!(has.is_empty() || found.contains(&has), "{sentence}: {found:?}");
            assert!(has_not.is_empty() || !found.contains(&has_not), "{sentence}: {found:?}");
        }
    }
}
