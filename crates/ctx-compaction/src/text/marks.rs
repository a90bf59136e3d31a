//! What a sentence is: a constraint, a decision, a question, something done or to do, an error.

/// What the words of a sentence say it is. Several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// It demands or forbids: "never", "must", "不要".
    pub(crate) constraint: bool,
    /// It holds from now on, whatever comes: "from now on", "以后".
    pub(crate) standing: bool,
    /// It takes something back: "never mind", "算了".
    pub(crate) revokes: bool,
    /// It decides: "we'll go with", "决定".
    pub(crate) decision: bool,
    /// It asks, or says that something is open.
    pub(crate) question: bool,
    /// It tells of something finished: "fixed", "已完成".
    pub(crate) done: bool,
    /// It tells of something to do: "next", "待办".
    pub(crate) todo: bool,
    /// It tells of an error.
    pub(crate) error: bool,
    /// It asks for work: "please", "add", "帮我".
    pub(crate) request: bool,
}

/// Reads the marks of a sentence.
pub(crate) fn marks(sentence: &str) -> Marks {
    let lower = sentence.to_ascii_lowercase();
    let any = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    Marks {
        constraint: any(&["never", "don't", "must", "always", "不要", "必须", "请用"]),
        standing: any(&["from now on", "以后"]),
        revokes: any(&["never mind", "算了"]),
        decision: any(&["decided", "go with", "决定"]),
        question: sentence.ends_with(['?', '？']),
        done: any(&["fixed", "done", "已完成"]),
        todo: any(&["todo", "next", "待办"]),
        error: any(&["error", "failed", "失败"]),
        request: any(&["please", "请", "帮我"]),
    }
}
