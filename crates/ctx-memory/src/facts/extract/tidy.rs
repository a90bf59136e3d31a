//! A clause as a fact is written: short, without how it was introduced.

/// Beginnings that say who wants it, not what.
const LEADS: &[&str] = &[
    "i'm trying to ",
    "i am trying to ",
    "i'm looking to ",
    "i'm working on ",
    "i want to ",
    "i want it to ",
    "i'd like to ",
    "i need to ",
    "we need to ",
    "we want to ",
    "i'm ",
    "i am ",
    "we are ",
    "we're ",
    "i've ",
    "we've ",
    "ok ",
    "okay ",
    "yes ",
    "so ",
    "and ",
    "but ",
    "also ",
    "then ",
    "now ",
    "now the ",
    "actually ",
    "well ",
    "done. ",
    "fixed. ",
    "great! ",
    "perfect! ",
    "currently ",
    "note: ",
    "important: ",
    "finally ",
    "you know ",
    "please ",
    "been ",
    "just ",
];

/// Longer than this, a fact is cut where a clause of it ends.
const LONG: usize = 140;

/// Joints at which a long fact is cut.
const JOINTS: &[&str] = &[
    ", which ",
    ", so ",
    " so that ",
    ", because ",
    " because ",
    ", and ",
    ", but ",
    " - ",
    ", with ",
    ", including ",
    " especially ",
    ", focusing ",
    ", making ",
    ", where ",
    " (",
    "; ",
    ", ",
    "，",
];

/// The fact as it is kept: Markdown, introductions and what hangs on behind are taken off.
pub(super) fn tidy(text: &str) -> String {
    capital(&bare(text))
}

/// The same with the first letter as it stands.
pub(super) fn bare(text: &str) -> String {
    let flat = without_links(text)
        .replace("**", "")
        .replace("__", "")
        .replace('’', "'")
        .replace(" -> ", " → ");
    let mut bare = flat.trim().trim_matches('*').trim();
    for (open, close) in [('"', '"'), ('“', '”')] {
        bare = bare.strip_prefix(open).and_then(|b| b.strip_suffix(close)).unwrap_or(bare);
    }
    for _ in 0..3 {
        let lead = LEADS.iter().find(|lead| {
            bare.get(..lead.len()).is_some_and(|start| start.eq_ignore_ascii_case(lead))
        });
        match lead.and_then(|lead| bare.get(lead.len()..)) {
            Some(rest) => bare = rest.trim_start_matches([',', ' ']),
            None => break,
        }
    }
    let mut out = bare
        .trim_end_matches(['.', ',', ';', ':', '!', '。', '，', '；', '：', '！', ' ', '*'])
        .to_owned();
    if out.chars().count() > LONG {
        let least = out.char_indices().nth(40).map_or(out.len(), |(at, _)| at);
        let most = out.char_indices().nth(LONG).map_or(out.len(), |(at, _)| at);
        let cut = JOINTS
            .iter()
            .filter_map(|joint| {
                let at = out.get(least..most)?.rfind(joint)? + least;
                balanced(out.get(..at)?).then_some(at)
            })
            .next();
        if let Some(at) = cut {
            out.truncate(at);
            out.truncate(out.trim_end_matches([',', ';', '，', ' ']).len());
        }
    }
    out
}

/// `[text](address)` as `text`.
fn without_links(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, after) = rest.split_at(at);
        let (Some(open), Some(close)) = (before.rfind('['), after.find(')')) else { break };
        out.push_str(before.get(..open).unwrap_or_default());
        out.push_str(before.get(open + 1..).unwrap_or_default());
        rest = after.get(close + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Whether no bracket or tick is left open.
fn balanced(text: &str) -> bool {
    text.matches('`').count().is_multiple_of(2)
        && text.matches('(').count() == text.matches(')').count()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// Whether a text names code: something in ticks, a path, a call, a name with humps or underscores.
pub(super) fn names_code(text: &str) -> bool {
    if text.matches('`').count() >= 2 {
        return true;
    }
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| matches!(c, ',' | '.' | ';' | ':' | '"' | '\''));
        let path = word.contains('/')
            && word.len() > 3
            && !word.starts_with("and/")
            && word.contains(|c: char| {
                matches!(c, '.' | '_') || word.starts_with('/') || word.matches('/').count() > 1
            });
        let call = word.ends_with("()");
        let snake = word.contains('_') && word.chars().all(|c| c.is_alphanumeric() || c == '_');
        let humps = word.is_ascii()
            && word
                .as_bytes()
                .windows(2)
                .filter(|w| matches!(w, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()))
                .count()
                > 0
            && word.bytes().all(|b| b.is_ascii_alphanumeric());
        let file = word.rsplit_once('.').is_some_and(|(stem, ext)| {
            !stem.is_empty()
                && (1..=5).contains(&ext.len())
                && ext.bytes().all(|b| b.is_ascii_lowercase())
                && stem.len() > 1
                && !word.starts_with("http")
        });
        path || call || snake || humps || file
    })
}
