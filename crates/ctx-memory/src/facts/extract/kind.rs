//! What a clause states.

use ctx_core::text::head;
use ctx_core::{Chars, Role};
use ctx_facts::{Statement, has_reason};
use ctx_text::{Signal, Span, SpanKind, WordList, is_cjk, marks, spans};

use crate::facts::FactKind;
use crate::facts::words::word_set;

/// A label ends within this many characters.
const LABEL: Chars = Chars(48);

/// Words that report a decision: by themselves, after "we" or "I", and if the user says them.
static DECISIONS: WordList = WordList::new("fact.decisions");
static DECIDED: WordList = WordList::new("fact.decided");
static SPEAKERS: WordList = WordList::new("fact.speakers");
static CHOICES: WordList = WordList::new("fact.choices");
/// Words before one of two things that are contrasted: "use X instead of Y".
static USES: WordList = WordList::new("fact.uses");
static NOW_USES: WordList = WordList::new("fact.now_uses");
/// Beginnings of a rule: "always", and the verbs after them.
static RULES: WordList = WordList::new("fact.rules");
static RULES_ANYWHERE: WordList = WordList::new("fact.rules_anywhere");
static RULE_VERBS: WordList = WordList::new("fact.rule_verbs");
/// Words that address the reader, typical of advice by a model.
static ADDRESSED: WordList = WordList::new("fact.addressed");
/// Words that say that work is open, and that it is finished.
static OPEN: WordList = WordList::new("fact.open");
static FINISHED: WordList = WordList::new("fact.finished");
/// Words before a setting, and before a place in the code.
static SETTINGS: WordList = WordList::new("fact.settings");
static PLACES: WordList = WordList::new("fact.places");
/// How a system is structured: "is split into".
static STRUCTURE: WordList = WordList::new("fact.structure");
/// Words with which people report an error: "I keep getting".
static SUFFERS: WordList = WordList::new("fact.suffers");
/// Beginnings of clauses that refer to something named elsewhere: alone they say nothing.
static POINTING: WordList = WordList::new("fact.pointing");
static POINTING_ANYWHERE: WordList = WordList::new("fact.pointing_anywhere");
/// Words with the same effect near the beginning: "include this".
static PRONOUNS: WordList = WordList::new("fact.pronouns");

/// Returns the kind of fact that a clause states; `None` for talk, plans, advice and questions.
/// `content` is the clause without its introduction.
pub(super) fn kind_of(clause: &str, content: &str, role: &Role) -> Option<FactKind> {
    let (marks, own) = (marks(clause), marks(content));
    if marks.question || marks.tentative || own.tentative || clause.ends_with([':', '：']) {
        return None;
    }
    let by_user = *role != Role::Assistant;
    let is_copular = || Statement::of(clause).is_copular();
    if Signal::of(clause).causes && is_copular() {
        return Some(FactKind::Issue);
    }
    let lower = format!(" {} ", clause.replace('’', "'").to_lowercase());
    let has = |list: &WordList| list.iter().any(|words| lower.contains(words));
    // With `Label: what it does` a model explains; it does not report its work.
    if !by_user && (head(clause, LABEL).contains(": ") || has(&ADDRESSED)) {
        return None;
    }
    let chooses = marks.contrast && has(if by_user { &USES } else { &NOW_USES });
    let decides = has(&DECISIONS) || has(&DECIDED) && has(&SPEAKERS) && !has(&ADDRESSED);
    let number = clause.contains(|c: char| c.is_ascii_digit());
    let is_done = Signal::of(content).done_first;
    let code = || {
        let code = |span: &Span<'_>| matches!(span.kind, SpanKind::Path | SpanKind::CodeName);
        spans(clause).iter().any(code)
    };
    Some(match () {
        () if has(&OPEN) => FactKind::TaskState,
        () if marks.error && has_reason(clause) && (by_user || is_copular()) => FactKind::Issue,
        () if by_user && marks.error && !own.request && has(&SUFFERS) => FactKind::Issue,
        () if by_user && has(&STRUCTURE) => FactKind::Architecture,
        () if decides || chooses => FactKind::Decision,
        () if by_user && (has(&CHOICES) || sets_rule(content)) => FactKind::Decision,
        () if number && has(&SETTINGS) => FactKind::Config,
        () if (is_done || is_place(clause)) && code() => FactKind::Implementation,
        () if by_user && has(&FINISHED) => FactKind::TaskState,
        () => return None,
    })
}

/// Whether a clause sets a rule: "always use pnpm", "don't touch the migrations".
fn sets_rule(content: &str) -> bool {
    let lower = content.to_lowercase();
    let mut words = lower.split_whitespace().peekable();
    let is_rule = words.next_if(|word| RULES.contains(word)).is_some();
    let verb = words.find(|word| !RULES.contains(word));
    is_rule && verb.is_some_and(|verb| RULE_VERBS.contains(&verb))
        || RULES_ANYWHERE.iter().any(|start| lower.starts_with(start))
}

/// Whether a clause states a location: "the endpoint is /api/hook".
fn is_place(clause: &str) -> bool {
    spans(clause).iter().any(|span| {
        let before = clause.get(..span.range.start).unwrap_or_default();
        let after = clause.get(span.range.end..).unwrap_or_default();
        span.kind == SpanKind::Path
            && after.len() < 24
            && PLACES.iter().any(|words| before.trim_end_matches('`').ends_with(words))
    })
}

fn first_word(text: &str) -> String {
    let lower = text.to_lowercase();
    lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).next().unwrap_or_default().to_owned()
}

/// Whether a fact is meaningful on its own.
pub(super) fn worth_keeping(content: &str) -> bool {
    let chars = content.chars().count();
    let lower = content.to_lowercase();
    let points = |word: &str| PRONOUNS.contains(&word);
    let words =
        word_set(content).iter().filter(|word| !word.bytes().all(|b| b.is_ascii_digit())).count();
    (chars >= 12 || content.contains(is_cjk) && chars >= 5)
        && chars <= 220
        && words >= 2
        && !POINTING.contains(&first_word(content).as_str())
        && !lower.split_whitespace().take(3).any(points)
        && !POINTING_ANYWHERE.iter().any(|start| content.starts_with(start))
        && !content.ends_with([':', '：', '?', '？'])
        && ['`', '"'].iter().all(|&quote| content.matches(quote).count().is_multiple_of(2))
        && !content.contains("[redacted")
        && !content.contains('\u{fffd}')
}
