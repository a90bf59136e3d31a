use std::fs;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::*;

const CLAUDE: &str = concat!(
    r#"{"type":"summary","summary":"a title","leafUuid":"u0"}"#,
    "\n",
    r#"{"parentUuid":null,"isSidechain":false,"cwd":"/p/one","sessionId":"aaaa-1","type":"user","message":{"role":"user","content":"hi"},"uuid":"u1","timestamp":"2026-01-05T08:00:00Z"}"#,
    "\n",
    r#"{"parentUuid":"u1","isSidechain":false,"cwd":"/p/one","sessionId":"aaaa-1","type":"assistant","message":{"role":"assistant","id":"m1","model":"claude-opus-4-5","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":3,"cache_read_input_tokens":40,"cache_creation_input_tokens":500,"output_tokens":7}},"uuid":"u2","timestamp":"2026-01-05T08:00:01Z"}"#,
    "\n",
);
const CODEX: &str = concat!(
    r#"{"timestamp":"2026-01-05T08:00:00Z","type":"session_meta","payload":{"id":"bbbb-1","cwd":"/p/two","source":"cli"}}"#,
    "\n",
    r#"{"timestamp":"2026-01-05T08:00:02Z","type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":4964,"cached_input_tokens":4955,"output_tokens":1,"total_tokens":4965},"model_context_window":19000}}}"#,
    "\n",
);
const PI: &str = concat!(
    r#"{"type":"session","version":3,"id":"cccc-1","timestamp":"2026-01-05T08:00:00Z","cwd":"/p/one"}"#,
    "\n",
    r#"{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-05T08:00:00Z","message":{"role":"assistant","content":[],"model":"claude-opus-4-5","usage":{"input":1,"output":2,"cacheRead":30,"cacheWrite":400}}}"#,
    "\n",
);

struct Homes(TempDir);

impl Homes {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Writes a file that is `age` minutes old.
    fn write(&self, name: &str, text: &str, age: u64) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 - age * 60);
        fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        path
    }

    fn homes(&self) -> AgentHomes {
        let at = |name: &str| self.0.path().join(name);
        AgentHomes::default()
            .with(Agent::CLAUDE_CODE, at("claude"))
            .with(Agent::CODEX, at("codex"))
            .with(Agent::PI, at("pi"))
            .with(Agent::OPENCLAW, at("openclaw"))
            .with(Agent::GEMINI_CLI, at("gemini"))
            .with(Agent::OPENCODE, at("opencode"))
            .with(Agent::CTX, at("ctx").join("agents"))
    }

    fn ids(&self) -> Vec<(Agent, String)> {
        let found = self.homes().sessions();
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        found.sessions.into_iter().map(|session| (session.agent, session.session_id)).collect()
    }
}

#[test]
fn sessions_of_every_agent_are_found_newest_first_with_project_and_usage() {
    let home = Homes::new();
    home.write("claude/-p-one/aaaa-1.jsonl", CLAUDE, 5);
    home.write("codex/2026/01/05/rollout-2026-01-05T08-00-00-bbbb-1.jsonl", CODEX, 4);
    home.write("pi/--p-one--/2026-01-05T08-00-00-000Z_cccc-1.jsonl", PI, 3);
    home.write("openclaw/main/sessions/dddd-1.jsonl", &PI.replace("cccc", "dddd"), 2);
    let ours = PI.replace("cccc", "eeee").replace(r#""version":3"#, r#""version":3,"ctx":1"#);
    home.write("ctx/agents/main/sessions/eeee-1.jsonl", &ours, 1);
    let found = home.homes().sessions();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let described: Vec<_> = found
        .sessions
        .iter()
        .map(|session| {
            let usage = session.last_usage().unwrap();
            let project = session.project.as_ref().unwrap().to_str().unwrap();
            (session.agent.name(), session.session_id.as_str(), project, usage.prompt_tokens)
        })
        .collect();
    assert_eq!(
        described,
        [
            ("ctx", "eeee-1", "/p/one", 431),
            ("openclaw", "dddd-1", "/p/one", 431),
            ("pi", "cccc-1", "/p/one", 431),
            ("codex", "bbbb-1", "/p/two", 4964),
            ("claude-code", "aaaa-1", "/p/one", 543),
        ]
    );
    let codex = found.sessions[3].last_usage().unwrap();
    assert_eq!(codex.window, Some(19_000));
    assert_eq!(found.sessions[4].last_usage().unwrap().model.unwrap(), "claude-opus-4-5");
    assert_eq!(home.homes().newest_in(Path::new("/p/two")).unwrap().session_id, "bbbb-1");
    assert_eq!(home.homes().newest_in(Path::new("/p/one/src")).unwrap().session_id, "eeee-1");
    assert_eq!(home.homes().newest_in(Path::new("/p")), None);
}

#[test]
fn files_that_are_not_separate_sessions_are_skipped() {
    let home = Homes::new();
    home.write("claude/-p-one/agent-1.jsonl", CLAUDE, 1);
    home.write("claude/-p-one/aaaa-1/subagents/agent-2.jsonl", CLAUDE, 1);
    home.write("claude/-p-one/side.jsonl", &CLAUDE.replace(r#"chain":false"#, r#"chain":true"#), 1);
    home.write("claude/-p-one/title.jsonl", CLAUDE.lines().next().unwrap(), 1);
    home.write("claude/-p-one/empty.jsonl", "", 1);
    home.write("claude/-p-one/noise.jsonl", "\0\u{1}\nnot json\n[]\n", 1);
    home.write("claude/-p-one/notes.txt", CLAUDE, 1);
    home.write("claude/aaaa-2.jsonl", CLAUDE, 1);
    let source = r#""source":{"subagent":{"depth":1}}"#;
    let child = CODEX.replace(r#""source":"cli""#, source);
    home.write("codex/2026/01/05/rollout-child.jsonl", &child, 1);
    home.write("openclaw/main/sessions/x.jsonl.deleted.2026", PI, 1);
    fs::create_dir_all(home.0.path().join("pi/--p--/folder.jsonl")).unwrap();
    assert_eq!(home.ids(), []);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_unreadable_files_are_reported() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Homes::new();
    let outside = home.write("outside/aaaa-1.jsonl", CLAUDE, 1);
    home.write("claude/-p-one/aaaa-2.jsonl", &CLAUDE.replace("aaaa-1", "aaaa-2"), 1);
    symlink(&outside, home.0.path().join("claude/-p-one/aaaa-3.jsonl")).unwrap();
    symlink(home.0.path().join("outside"), home.0.path().join("claude/-p-two")).unwrap();
    assert_eq!(home.ids(), [(Agent::CLAUDE_CODE, "aaaa-2".to_owned())]);
    let found = Discovery::in_folder(&home.0.path().join("claude")).unwrap();
    assert_eq!(found.sessions.len(), 1);
    let closed = home.write("claude/-p-one/aaaa-4.jsonl", CLAUDE, 1);
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&closed).is_err() {
        let found = home.homes().sessions();
        assert_eq!(found.sessions.len(), 1);
        let problem = found.problems[0].to_string();
        assert!(problem.contains("aaaa-4.jsonl"), "{problem}");
    }
}

#[test]
fn a_session_is_found_by_a_prefix_of_its_id() {
    let home = Homes::new();
    for (n, age) in [("1", 1), ("2", 2), ("21", 3)] {
        let (id, text) = (format!("aaaa-{n}"), CLAUDE.replace("aaaa-1", &format!("aaaa-{n}")));
        home.write(&format!("claude/-p-one/{id}.jsonl"), &text, age);
        // A copy under another folder is the same session, and older.
        home.write(&format!("claude/-p-two/{id}.jsonl"), &text, age + 10);
    }
    let named = |id: &str| home.homes().named(id);
    assert_eq!(named("aaaa-1").unwrap().session_id, "aaaa-1");
    assert_eq!(named("aaaa-2").unwrap().session_id, "aaaa-2");
    assert!(named("aaaa-21").unwrap().path.ends_with("-p-one/aaaa-21.jsonl"));
    let several = named("aaaa").unwrap_err();
    assert_eq!(several.kind(), ErrorKind::Conflict);
    assert!(several.to_string().contains("aaaa-1, aaaa-2, aaaa-21"), "{several}");
    for missing in ["bbbb", "", "aaaa-3"] {
        assert_eq!(named(missing).unwrap_err().kind(), ErrorKind::NotFound, "{missing:?}");
    }
}

#[test]
fn usage_is_the_last_reported_one_and_never_guessed() {
    let home = Homes::new();
    let usage = |text: &str| {
        home.write("claude/-p-one/aaaa-1.jsonl", text, 1);
        home.homes().sessions().sessions[0].last_usage().map(|usage| usage.prompt_tokens)
    };
    let answer = CLAUDE.lines().nth(2).unwrap();
    let with = |more: &str| usage(&format!("{CLAUDE}{more}\n"));
    assert_eq!(usage(CLAUDE), Some(543));
    assert_eq!(with(&answer.replace("40", "60")), Some(563));
    // A line that is being written, a subagent, a client-generated answer, zeros.
    assert_eq!(usage(&format!("{CLAUDE}{}", &answer[..answer.len() - 30])), Some(543));
    assert_eq!(with(&answer.replace(r#"chain":false"#, r#"chain":true"#)), Some(543));
    assert_eq!(with(&answer.replace("claude-opus-4-5", "<synthetic>")), Some(543));
    assert_eq!(
        with(&answer.replace("3,", "0,").replace("40,", "0,").replace("500,", "0,")),
        Some(543)
    );
    // After a result that is longer than the first read.
    let long = format!(r#"{{"type":"user","sessionId":"s","text":"{}"}}"#, "usage ".repeat(40_000));
    assert_eq!(with(&long), Some(543));
    let question = CLAUDE.lines().take(2).collect::<Vec<_>>().join("\n");
    assert_eq!(usage(&question), None);
}

#[test]
fn gemini_cli_chats_have_a_project_and_subagent_chats_are_skipped() {
    let home = Homes::new();
    let header = |kind: &str| {
        format!(r#"{{"sessionId":"eeee-1","projectHash":"09","startTime":"x","kind":"{kind}"}}"#)
    };
    let answer = r#"{"id":"g1","type":"gemini","content":"hi","tokens":{"input":6012,"output":12,"cached":5986},"model":"gemini-2.5-flash"}"#;
    let chat = format!("{}\n{answer}\n", header("main"));
    home.write("gemini/ws/.project_root", "/p/one", 1);
    home.write("gemini/ws/chats/session-2026-eeee.jsonl", &chat, 1);
    home.write("gemini/ws/chats/session-2026-ffff.jsonl", &header("subagent"), 1);
    home.write("gemini/ws/logs.json", "[]", 1);
    // The older format, in a folder whose name is a hash.
    let old = r#"{"sessionId": "dddd-1", "projectHash": "09",
        "messages": [{"id": "g1", "type": "gemini", "content": "hi",
        "tokens": {"input": 7000,
        "cached": 0}, "model": "gemini-2.0"}]}"#;
    home.write("gemini/0939/chats/session-2026-dddd.json", old, 2);
    let found = home.homes().sessions().sessions;
    let described: Vec<_> = found
        .iter()
        .map(|session| {
            let usage = session.last_usage().unwrap();
            let project = session.project.as_ref().and_then(|project| project.to_str());
            (session.session_id.as_str(), project, usage.prompt_tokens, usage.model.unwrap())
        })
        .collect();
    let row = |id, project, tokens, model: &str| (id, project, tokens, model.to_owned());
    assert_eq!(
        described,
        [
            row("eeee-1", Some("/p/one"), 6012, "gemini-2.5-flash"),
            row("dddd-1", None, 7000, "gemini-2.0"),
        ]
    );
    assert_eq!(found[0].agent, Agent::GEMINI_CLI);
}

#[test]
fn sessions_that_opencode_keeps_in_files_are_found_and_read() {
    let home = Homes::new();
    let write =
        |name: &str, text: &str| home.write(&format!("opencode/storage/{name}.json"), text, 1);
    let info = r#"{"id":"ses_1","projectID":"global","directory":"/p/one","title":"t"}"#;
    write("session/global/ses_1", info);
    let child = r#"{"id":"ses_2","parentID":"ses_1","projectID":"global","directory":"/p/one"}"#;
    write("session/global/ses_2", child);
    write(
        "message/ses_1/msg_1",
        r#"{"id":"msg_1","role":"user","time":{"created":1767600000000}}"#,
    );
    let tokens = r#"{"input":50,"output":38,"reasoning":0,"cache":{"read":2402,"write":0}}"#;
    let answer =
        format!(r#"{{"id":"msg_2","role":"assistant","modelID":"claude","tokens":{tokens}}}"#);
    write("message/ses_1/msg_2", &answer);
    write("message/ses_1/msg_3", &answer[..20]);
    write("part/msg_1/prt_1", r#"{"id":"prt_1","type":"text","text":"first"}"#);
    write("part/msg_1/prt_2", r#"{"id":"prt_2","type":"text","text":"second"}"#);
    write("part/msg_2/prt_3", r#"{"id":"prt_3","type":"text","text":"answer"}"#);
    let found = home.homes().sessions().sessions;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].agent, found[0].session_id.as_str()), (Agent::OPENCODE, "ses_1"));
    assert_eq!(found[0].project.as_deref(), Some(Path::new("/p/one")));
    assert_eq!(found[0].last_usage().unwrap().prompt_tokens, 2_452);
    let transcript = crate::transcript::Transcript::open(&found[0].path).unwrap();
    let line = transcript.main_line().unwrap();
    let texts = line.iter().map(|item| item.entry.message().unwrap().plain_text());
    assert_eq!(texts.collect::<Vec<_>>(), ["first\nsecond", "answer"]);
}
