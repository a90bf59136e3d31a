//! Text that is never a fact: talk, doubt, short-term plans, examples.

use ctx_text::WordList;
use std::sync::LazyLock;

use regex::Regex;

/// Markers of text that memory or a host inserted into a message. Extracting it would turn a fact
/// into a fact again.
static INJECTED: WordList = WordList::new("injected.starts");

/// Whether a text holds recalled or injected text. Nothing is extracted from it.
pub(crate) fn is_injected(text: &str) -> bool {
    INJECTED.iter().any(|mark| text.contains(mark))
}

/// Doubt, conditions, wishes.
static DOUBT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)(?-u:\b)(?:maybe|perhaps|might|may|could|would|possibly|probably|presumably|apparently|seems?|
          i\ (?:think|guess|suppose|wonder|believe|assume|feel)|i'?m\ (?:thinking|wondering|guessing|considering|debating|not\ sure|unsure|unsure\ if)
          |not\ sure|unsure|what\ if|wonder(?:ing)?|consider(?:ing)?|suppose|imagine|hypothetically|
          (?:not|n't)\ (?:yet\ )?decided|undecided|trying\ to\ decide|help\ me\ decide|torn\ between|debating|whether|
          should\ (?:i|we)|ideally|in\ theory|either|you\ should|should\ be\ able|you'?ll|depending|depends\ on\ (?:your|the)\ (?:needs|use)|supposed\ to|suspect|likely|if)(?-u:\b)
          | 也许|可能|或许|大概|如果|是否|考虑|猜|应该是|好像|似乎|不确定|假如|要不要|万一",
    )
    .ok()
});

/// Short-term statements, and debugging by trial.
static PASSING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^(?:now|next|first|then|ok(?:ay)?|great|good|perfect|alright)?[,.!\ ]*
          (?:let\ me|let\ us|i'?ll\ now|i\ will\ now|now\ i|now\ let|i\ need\ to|i'?m\ going\ to|i\ should|i\ see|i\ can\ see|i\ notice|i\ understand|looking\ at|here'?s|here\ (?:is|are)|for\ example|for\ instance|e\.g\.|example|note\ that|remember|make\ sure|ensure|verify\ that|confirm\ that|you\ can|you\ could|you\ may|to\ (?:run|use|test|start|install|do)\b)
          | (?-u:\b)(?:console\.log|print\ statement|println|debug(?:ging)?\ (?:log|print|output|statement)|temporar(?:y|ily)|for\ now|quick\ (?:check|test)|try\ again|as\ a\ test|just\ testing|for\ debugging|imports?\ (?:for|statements?))(?-u:\b)
          | 让我|我来看|先看|临时|调试|试一下|例如|比如|举例|暂时",
    )
    .ok()
});

/// Greetings, thanks and praise.
static TALK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^(?:hi|hey|hello|thanks|thank\ you|good\ (?:morning|evening|night)|bye|see\ you|sorry|wow|haha|lol|congrat|sounds\ good|no\ problem|you'?re\ (?:welcome|right|absolutely)|glad|happy\ to|cool|nice|awesome|you\ got\ this|never\ mind|don'?t\ (?:worry|forget|hesitate|let|be)|never\ (?:give|stop))
          | ^(?:你好|谢谢|早上好|再见|辛苦|哈哈|好的|没问题)",
    )
    .ok()
});

/// Clauses that refer to something named elsewhere: alone they say nothing.
static POINTING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^(?:using\ |use\ )?(?:it|you|them|him|his|her|up|out|something|everything|this|that|these|those|they|he|she|which|who|there|here|one|both|all\ of|some\ of|the\ (?:above|following|former|latter)|so\ that|because|since|when|while|after|before|although|unless|until|once)(?-u:\b)
          | ^(?:这|那|它|其中|因为|所以|当)",
    )
    .ok()
});

fn holds(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|regex| regex.is_match(text))
}

/// Whether a clause is not a lasting statement.
pub(super) fn is_excluded(clause: &str) -> bool {
    [&DOUBT, &PASSING, &TALK].into_iter().any(|regex| holds(regex, clause))
        || clause.contains("[redacted")
        || clause.contains('\u{fffd}')
}

/// Whether a text says nothing without the text before it.
pub(super) fn is_pointing(content: &str) -> bool {
    holds(&POINTING, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!([&DOUBT, &PASSING, &TALK, &POINTING].into_iter().all(|regex| regex.is_some()));
    }
}
