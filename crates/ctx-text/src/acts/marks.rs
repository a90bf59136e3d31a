//! Classifies a sentence: constraint, decision, question, completed or planned work.
//!
//! The rules are the word lists `cues.*`. The speaker is not known here: "we chose X" is a decision
//! from any speaker, but "never do X" is a constraint only from a user.

use super::cues::{Found, List};

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
    /// It asks for work: "please", "add", "帮我".
    pub request: bool,
    /// It doubts, supposes, announces a step, advises or greets: it states nothing that lasts.
    pub tentative: bool,
}

/// Classifies a sentence.
pub fn marks(sentence: &str) -> Marks {
    Marks::of(&Found::of(sentence))
}

impl Marks {
    pub(super) fn of(found: &Found) -> Self {
        let end = found.lower.trim_end_matches(['"', '\'', ')', '”', '*', '`', ' ', '）']);
        Self {
            constraint: found.has(List::Constraint),
            standing: found.has(List::Standing),
            revokes: found.has(List::Revokes),
            decision: found.has(List::Decision),
            contrast: found.has(List::Contrast),
            question: found.has(List::Question) || end.ends_with(['?', '？', '吗', '呢', '么']),
            request: found.has(List::Request),
            tentative: found.has(List::Tentative),
        }
    }
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
            ("Never touch it; it is good, keep it.", "constraint", ""),
            ("Keep it.", "constraint", ""),
            ("You read it once instead of up to three times", "", "constraint"),
            ("结果全都落在公元五万年以后。", "", "standing"),
            ("它把毫秒当成了秒", "", "request"),
            ("把毫秒改成秒", "request", ""),
            ("The API must stay backwards compatible", "constraint", ""),
            ("I don't know why it fails.", "", "constraint"),
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
            ("Add a retry to the client", "request", ""),
            ("帮我修复登录", "request", ""),
            ("The address is broken", "", "request"),
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
