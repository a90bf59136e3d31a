//! Which clauses of the user state something that holds beyond the current step.

use ctx_facts::{has_reason, stated_kind};
use ctx_text::{Sentence, WordList, is_cjk, is_name, is_step, marks};

use crate::facts::FactKind;
use crate::facts::words::word_set;

/// Words that report a decision: after "we" or "I", by themselves, and before what is used.
static DECIDED: WordList = WordList::new("fact.decided");
static SPEAKERS: WordList = WordList::new("fact.speakers");
static CHOICES: WordList = WordList::new("fact.choices");
/// Words before one of two things that are contrasted: "use X instead of Y".
static USES: WordList = WordList::new("fact.uses");
/// Beginnings of a rule: "always", and the verbs after them.
static RULES: WordList = WordList::new("fact.rules");
static RULES_ANYWHERE: WordList = WordList::new("fact.rules_anywhere");
static RULE_VERBS: WordList = WordList::new("fact.rule_verbs");
/// Verbs of removal, and words that say that a thing was there only for a while: "again".
static REMOVALS: WordList = WordList::new("fact.removals");
static AGAIN: WordList = WordList::new("fact.again");
/// Words before or after a limit: "at most".
static LIMITS: WordList = WordList::new("fact.limits");
/// Words before a setting.
static SETTINGS: WordList = WordList::new("fact.settings");
/// How a system is structured: "is split into".
static STRUCTURE: WordList = WordList::new("fact.structure");
/// Beginnings of what users say about themselves: "my name is".
static PERSONAL: WordList = WordList::new("fact.personal");
/// Beginnings of clauses that refer to something named elsewhere: alone they say nothing.
static POINTING: WordList = WordList::new("fact.pointing");
static POINTING_ANYWHERE: WordList = WordList::new("fact.pointing_anywhere");
/// Words with the same effect near the beginning: "include this".
static PRONOUNS: WordList = WordList::new("fact.pronouns");
/// Words about others and about single events, which tell nothing lasting of the user.
static OTHERS: WordList = WordList::new("fact.others");
/// Words that address the reader.
static ADDRESSED: WordList = WordList::new("fact.addressed");

/// Returns the kind of the lasting fact that a clause states; `None` for talk, plans, questions and
/// requests for the current step.
pub(super) fn lasting(clause: &str) -> Option<FactKind> {
    let marks = marks(clause);
    if marks.question || marks.tentative || !stands_alone(clause) {
        return None;
    }
    let lower = format!(" {} ", clause.replace('’', "'").to_lowercase());
    let has = |list: &WordList| list.iter().any(|words| lower.contains(words));
    let begins = |list: &WordList| list.iter().any(|words| lower.trim_start().starts_with(words));
    // A value follows the words within this number of characters.
    let gives = |list: &WordList, within| {
        let has_digit = |rest: &str| rest.chars().take(within).any(|c| c.is_ascii_digit());
        list.iter().any(|words| lower.split(words).skip(1).any(has_digit))
    };
    let decides = has(&DECIDED) && has(&SPEAKERS) && !has(&ADDRESSED) && words(clause) > 3
        || has(&CHOICES) && words(clause) > 2;
    // "I'm Ada".
    let is_named = || clause.split_whitespace().nth(1).is_some_and(is_name);
    let removes = has(&REMOVALS) && (has(&AGAIN) || has_reason(clause));
    Some(match stated_kind(&Sentence { text: clause, marks })? {
        _ if is_step(clause) && !removes => return None,
        _ if sets_rule(&lower) => FactKind::Constraint,
        ctx_facts::FactKind::Personal if (is_named() || begins(&PERSONAL)) && !has(&OTHERS) => {
            FactKind::Personal
        }
        _ if has(&STRUCTURE) => FactKind::Architecture,
        _ if decides || removes || marks.contrast && has(&USES) => FactKind::Decision,
        ctx_facts::FactKind::Constraint if gives(&LIMITS, 2) => FactKind::Constraint,
        _ if gives(&SETTINGS, 24) => FactKind::Config,
        _ => return None,
    })
}

/// Whether a clause sets a rule: "always use pnpm", "don't touch the migrations".
fn sets_rule(lower: &str) -> bool {
    let mut words = lower.split_whitespace().peekable();
    let is_rule = words.next_if(|word| RULES.contains(word)).is_some();
    let verb = words.find(|word| !RULES.contains(word));
    is_rule && verb.is_some_and(|verb| RULE_VERBS.contains(verb))
        || RULES_ANYWHERE.begins(lower.trim_start())
}

/// Whether a clause is meaningful without the text around it.
fn stands_alone(clause: &str) -> bool {
    let chars = clause.chars().count();
    let lower = clause.to_lowercase();
    let points = |word: &str| PRONOUNS.contains(word);
    let first = lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).next();
    (chars >= 12 || clause.contains(is_cjk) && chars >= 5)
        && chars <= 220
        && words(clause) >= 2
        && !first.is_some_and(|first| POINTING.contains(first))
        && !lower.split_whitespace().take(6).any(points)
        && !POINTING_ANYWHERE.begins(clause)
        && ['`', '"'].iter().all(|&quote| clause.matches(quote).count().is_multiple_of(2))
        && !clause.contains("[redacted")
}

/// Returns the number of content words that are not numbers.
fn words(clause: &str) -> usize {
    word_set(clause).iter().filter(|word| !word.bytes().all(|b| b.is_ascii_digit())).count()
}
