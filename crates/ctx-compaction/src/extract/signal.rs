//! What a sentence does: reports, decides, asks, announces, chats.

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
            || starts(bare, ASKS);
        let announces = starts(bare, ANNOUNCES);
        let next = has(&lower, NEXT).is_some();
        let done = !question && !announces && is_done(&lower, bare);
        let decision = !question && !announces && has(&lower, DECISIONS).is_some();
        let finding = !question && has(&lower, FINDINGS).is_some();
        let blocked = !question && has(&lower, BLOCKED).is_some();
        let demand = has(&lower, DEMANDS).is_some();
        let carries = done || decision || finding || blocked || next;
        let chatter = (announces || starts(bare, CHATTER)) && !(carries && !announces)
            || bare.chars().filter(|c| c.is_alphanumeric()).count() < 3;
        Self { done, blocked, decision, next, question, finding, demand, announces, chatter }
    }
}

/// A report of something finished: the word stands first, or nothing before it makes it a wish, a
/// condition or a denial.
fn is_done(lower: &str, bare: &str) -> bool {
    if starts(bare, DONE_FIRST) {
        return true;
    }
    let Some(at) = has(lower, DONE) else { return false };
    let before = lower.get(..at).unwrap_or_default();
    has(before, NOT_YET).is_none()
}

fn starts(bare: &str, list: &[&str]) -> bool {
    list.iter().any(|start| {
        bare.strip_prefix(start).is_some_and(|rest| {
            let latin = start.ends_with(|c: char| c.is_ascii_alphanumeric());
            !latin || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// Where the first of the words stands, as a word of its own.
fn has(lower: &str, list: &[&str]) -> Option<usize> {
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
        if !(latin_start && joins(before)) && !(latin_end && joins(after)) {
            return Some(start);
        }
        from = end;
    }
    None
}

/// A message that only agrees, thanks or tells the agent to go on.
pub(super) fn is_assent(text: &str) -> bool {
    let bare = text.trim().trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    bare.chars().count() < 40
        && (ASSENTS.contains(&bare.as_str())
            || bare
                .split([',', '.', '!', ' ', '，', '。', '！', '、'])
                .all(|word| word.is_empty() || ASSENTS.contains(&word) || FILLERS.contains(&word)))
}

const ASSENTS: &[&str] = &[
    "yes",
    "yep",
    "yeah",
    "y",
    "ok",
    "okay",
    "k",
    "sure",
    "continue",
    "go on",
    "go",
    "go ahead",
    "do it",
    "proceed",
    "thanks",
    "thank you",
    "great",
    "nice",
    "wow",
    "cool",
    "perfect",
    "good",
    "looks good",
    "lgtm",
    "yo",
    "hi",
    "hello",
    "hey",
    "correct",
    "right",
    "exactly",
    "awesome",
    "done",
    "please",
    "好",
    "好的",
    "好吧",
    "继续",
    "可以",
    "是",
    "是的",
    "对",
    "对的",
    "行",
    "嗯",
    "谢谢",
    "同意",
    "没问题",
    "开始吧",
    "你好",
    "不错",
    "很好",
    "可以的",
];

const FILLERS: &[&str] = &[
    "it", "on", "ahead", "do", "looks", "so", "much", "all", "very", "that", "is", "then", "now",
    "you",
];

const ASKS: &[&str] = &[
    "should i",
    "should we",
    "shall i",
    "would you like",
    "do you want",
    "would you prefer",
    "which option",
    "which approach",
    "let me know",
    "是否需要",
    "要不要",
    "需要我",
    "请问",
    "你希望",
    "您希望",
];

const ANNOUNCES: &[&str] = &[
    "let me",
    "let's",
    "let us",
    "now let me",
    "now let's",
    "now i'll",
    "now i will",
    "now i need to",
    "now i can",
    "now i",
    "i'll",
    "i will",
    "i need to",
    "i'm going to",
    "i am going to",
    "i should",
    "first, let me",
    "next, i'll",
    "next, let me",
    "next i'll",
    "then i'll",
    "also let me",
    "good, now",
    "great, now",
    "now update",
    "now add",
    "now fix",
    "now run",
    "now check",
    "now create",
    "now find",
    "now move",
    "now remove",
    "now rename",
    "now also",
    "also update",
    "also fix",
    "also add",
    "good! now",
    "perfect! now",
    "actually, let me",
    "让我",
    "我来",
    "我先",
    "我将",
    "我会",
    "现在我",
    "接下来我",
    "首先",
    "先看",
    "我需要",
];

const CHATTER: &[&str] = &[
    "great",
    "good",
    "perfect",
    "excellent",
    "wow",
    "nice",
    "sure",
    "okay",
    "ok",
    "got it",
    "i see",
    "you're right",
    "you are right",
    "that's right",
    "makes sense",
    "absolutely",
    "certainly",
    "of course",
    "happy to",
    "i'd be happy",
    "hmm",
    "wait",
    "looking at",
    "thanks",
    "thank you",
    "hello",
    "hi",
    "hi there",
    "hey",
    "i understand",
    "sorry",
    "i apologize",
    "yo",
    "here's",
    "here is",
    "here are",
    "i hope",
    "feel free",
    "no problem",
    "you're welcome",
    "good question",
    "great question",
    "that's a great",
    "congratulations",
    "announcing",
    "i'm using the",
    "one moment",
    "好的",
    "好,",
    "好，",
    "当然",
    "没问题",
    "明白",
    "收到",
    "你好",
    "您好",
    "谢谢",
    "不客气",
    "抱歉",
    "对不起",
    "很高兴",
    "太好了",
    "嗯",
];

const DONE_FIRST: &[&str] = &[
    "done",
    "fixed",
    "added",
    "updated",
    "created",
    "implemented",
    "removed",
    "committed",
    "pushed",
    "completed",
    "refactored",
    "renamed",
    "moved",
    "merged",
    "deployed",
    "released",
    "replaced",
    "converted",
    "installed",
    "deleted",
    "resolved",
    "migrated",
    "extracted",
    "wrote",
    "configured",
    "reverted",
    "published",
    "closed",
    "wired",
    "enabled",
    "disabled",
    "all tests pass",
    "all passing",
    "all green",
    "all done",
    "all committed",
    "tests pass",
    "已",
    "完成",
    "修复了",
    "添加了",
    "更新了",
    "删除了",
    "创建了",
    "实现了",
    "搞定",
];

const DONE: &[&str] = &[
    "done",
    "fixed",
    "added",
    "updated",
    "created",
    "implemented",
    "removed",
    "committed",
    "pushed",
    "completed",
    "complete",
    "refactored",
    "renamed",
    "moved",
    "merged",
    "deployed",
    "released",
    "replaced",
    "converted",
    "installed",
    "deleted",
    "resolved",
    "migrated",
    "extracted",
    "configured",
    "reverted",
    "published",
    "finished",
    "passes",
    "pass",
    "passed",
    "now works",
    "works now",
    "is working",
    "builds successfully",
    "succeeded",
    "is ready",
    "are ready",
    "posted",
    "filed",
    "wrote",
    "closed",
    "addressed",
    "已完成",
    "已经",
    "已修复",
    "已添加",
    "已更新",
    "已删除",
    "已创建",
    "已实现",
    "已提交",
    "已推送",
    "已部署",
    "已合并",
    "修复了",
    "修好了",
    "添加了",
    "更新了",
    "删除了",
    "创建了",
    "实现了",
    "改成了",
    "改为了",
    "完成了",
    "通过了",
    "全部通过",
    "测试通过",
    "搞定",
    "解决了",
    "迁移了",
    "写好了",
];

const NOT_YET: &[&str] = &[
    "not",
    "n't",
    "never",
    "to be",
    "should",
    "will",
    "would",
    "could",
    "can",
    "may",
    "might",
    "must",
    "need",
    "needs",
    "if",
    "once",
    "when",
    "whenever",
    "until",
    "before",
    "unless",
    "to get",
    "being",
    "want",
    "wants",
    "only after",
    "after",
    "every time",
    "no",
    "without",
    "gets",
    "get",
    "没",
    "没有",
    "还没",
    "尚未",
    "未",
    "如果",
    "需要",
    "应该",
    "等",
    "一旦",
    "当",
    "要",
    "将",
];

const BLOCKED: &[&str] = &[
    "blocked",
    "blocker",
    "can't proceed",
    "cannot proceed",
    "waiting for",
    "waiting on",
    "need your",
    "needs your",
    "i don't have access",
    "no access to",
    "still fails",
    "still failing",
    "still fail",
    "unable to",
    "could not be",
    "permission denied",
    "stuck on",
    "depends on the outcome",
    "阻塞",
    "卡住",
    "卡在",
    "等待",
    "无法继续",
    "没有权限",
    "仍然失败",
    "还是失败",
    "依然失败",
    "无法访问",
];

const DECISIONS: &[&str] = &[
    "decided",
    "decision",
    "chose",
    "chosen",
    "choose",
    "going with",
    "went with",
    "go with",
    "opted",
    "opt for",
    "settled on",
    "we'll use",
    "we will use",
    "agreed",
    "instead of",
    "rather than",
    "switched to",
    "switch to",
    "we keep",
    "keep it",
    "prefer",
    "in favor of",
    "in favour of",
    "trade-off",
    "tradeoff",
    "by design",
    "intentional",
    "intentionally",
    "on purpose",
    "deliberately",
    "out of scope",
    "recommend",
    "recommended",
    "决定",
    "选择",
    "选用",
    "采用",
    "改用",
    "而不是",
    "而非",
    "确定用",
    "不采用",
    "放弃",
    "权衡",
    "约定",
];

const NEXT: &[&str] = &[
    "next step",
    "next steps",
    "next up",
    "next,",
    "next:",
    "next is",
    "remaining",
    "remains",
    "still need",
    "still needs",
    "still to do",
    "left to do",
    "todo",
    "to do:",
    "follow-up",
    "follow up",
    "up next",
    "not yet",
    "pending",
    "later we",
    "future work",
    "future enhancement",
    "下一步",
    "接下来",
    "还需要",
    "还要",
    "待办",
    "剩下",
    "剩余",
    "后续",
    "尚未",
    "还没",
    "之后再",
];

const FINDINGS: &[&str] = &[
    "root cause",
    "the problem is",
    "the problem was",
    "the issue is",
    "the issue was",
    "the bug",
    "because",
    "turns out",
    "the reason",
    "caused by",
    "due to",
    "the cause",
    "this means",
    "which means",
    "the culprit",
    "found that",
    "found it",
    "found the",
    "it seems that",
    "confirmed",
    "verified",
    "is called",
    "are called",
    "only when",
    "the key",
    "key insight",
    "important",
    "note that",
    "note:",
    "caveat",
    "warning",
    "bug",
    "broken",
    "regression",
    "missing",
    "fails",
    "failed",
    "failing",
    "does not",
    "doesn't",
    "never",
    "always",
    "so that",
    "therefore",
    "根因",
    "根本原因",
    "原因",
    "问题是",
    "问题在于",
    "因为",
    "导致",
    "由于",
    "发现",
    "注意",
    "说明",
    "确认",
    "缺少",
    "不会",
    "失败",
    "报错",
];

const DEMANDS: &[&str] = &[
    "don't",
    "do not",
    "dont",
    "never",
    "must",
    "must not",
    "mustn't",
    "always",
    "only",
    "make sure",
    "ensure",
    "avoid",
    "no longer",
    "without",
    "instead",
    "prefer",
    "should",
    "shouldn't",
    "need to",
    "needs to",
    "has to",
    "have to",
    "required",
    "keep",
    "please use",
    "use the",
    "stick to",
    "remember",
    "at least",
    "at most",
    "i want",
    "i'd like",
    "i would like",
    "we want",
    "i only want",
    "let's keep",
    "not allowed",
    "forbidden",
    "stop",
    "leave",
    "as is",
    "no need",
    "不要",
    "别",
    "必须",
    "只能",
    "只要",
    "禁止",
    "务必",
    "请用",
    "不准",
    "不能",
    "不得",
    "始终",
    "总是",
    "一定",
    "优先",
    "确保",
    "保持",
    "避免",
    "记住",
    "至少",
    "最多",
    "不用",
    "无需",
    "尽量",
    "统一",
];

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
