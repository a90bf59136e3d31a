//! A message that left the window is not lost. After a compaction, recall inserts it into the next
//! prompt that asks for it.

use std::path::PathBuf;

use ctx_testkit::provider::FakeProvider;
use serde_json::{Value, json};

#[cfg(unix)]
use crate::memory::asks_again;
use crate::memory::{FACT, keeps_old, long_talk, room, said};
use crate::support::{Ran, Room, pi_lines, text};

const QUESTION: &str = "remind me, what is the parrot of the lighthouse keeper called?";

/// A session that states a fact, is compacted by a model and asks for it, with the flags of one setup.
struct Talk {
    room: Room,
    file: PathBuf,
    provider: FakeProvider,
    flags: &'static [&'static str],
}

impl Talk {
    fn new(memory: Value, flags: &'static [&'static str]) -> Self {
        let provider = FakeProvider::builder().start().expect("it starts");
        let mut config = keeps_old(memory);
        config["models"] = json!({"providers": {"fake": {
            "baseUrl": provider.v1(), "api": "openai-completions", "apiKey": "none",
            "models": [{"id": "writer", "contextWindow": 64_000}],
        }}});
        let room = room(&config);
        let source = room.write("source.jsonl", talk(120));
        let file = room.path("agents/main/sessions/s1.jsonl");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
        let to = ["convert", text(&source), "--to", "ctx", "--output", text(&file)];
        assert_eq!(room.ctx(&to).code, Some(0));
        std::fs::remove_file(&source).expect("it is there");
        Self { room, file, provider, flags }
    }

    fn json(&self, command: &str, more: &[&str]) -> Value {
        let args = [command, text(&self.file), "--window", "32000"];
        self.room.json(&[&args, self.flags, more].concat())
    }

    /// Returns the request that would be sent now, and its manifest.
    fn prompt(&self, more: &[&str]) -> (String, Value) {
        let mut assembled = self.json("assemble", more);
        (assembled["messages"].take().to_string(), assembled["manifest"].take())
    }

    /// Continues the conversation, from message `from` to before message `to`.
    fn goes_on(&self, from: usize, to: usize) {
        let lines = talk(to);
        lines.lines().skip(1 + from).for_each(|line| self.append(line));
    }

    /// Appends a message after the last entry.
    fn append(&self, line: &str) {
        let stored = std::fs::read_to_string(&self.file).expect("it is there");
        let last: Value = serde_json::from_str(stored.lines().last().expect("one")).expect("JSON");
        let mut message: Value = serde_json::from_str(line).expect("JSON");
        message["parentId"] = last["id"].clone();
        std::fs::write(&self.file, format!("{stored}{message}\n")).expect("it is written");
    }
}

/// Returns the long talk with the fact stated by the agent, whose words do not stay in the summary.
fn talk(messages: usize) -> String {
    let user = format!("one question before we go on: {FACT}. Noted?");
    let module = "module 5 reads its input, checks it and writes it out again. ";
    let lines = long_talk(messages).replacen(&user, "please look at module 4", 1);
    lines.replacen(module, &format!("{FACT}. {module}"), 1)
}

/// Returns the request that asks for the fact, and its manifest. The fact is stated in the sixth
/// message, compacted away after 320 messages, and asked for in message 400.
fn recalls(memory: Value, flags: &'static [&'static str]) -> (String, Value) {
    let talk = Talk::new(memory, flags);
    let mut told = 120;
    for messages in [200, 320] {
        let (_, manifest) = talk.prompt(&["--record"]);
        assert!(manifest["tokens"].as_u64() <= manifest["limit"].as_u64(), "{manifest}");
        talk.goes_on(told, messages);
        told = messages;
    }
    talk.json("assemble", &["--record"]);
    let done = talk.json("compact", &["--summary-model", "fake/writer", "--force"]);
    assert_eq!(done["compacted"], true, "{done}");
    assert!(talk.provider.count() > 0, "the model was asked");
    let summary = done["result"]["summary"].as_str().expect("a summary");
    assert!(!summary.contains("Quillon"), "the fact is compacted away: {summary}");
    let (prompt, _) = talk.prompt(&[]);
    assert!(!prompt.contains("Quillon"), "the fact was not asked for: {prompt}");

    talk.append(&said(400, "user", QUESTION));
    let shown =
        talk.room.ctx(&[&["assemble", text(&talk.file), "--window", "32000"], flags].concat());
    assert!(shown.stdout.contains("memory: recalled: "), "{}", shown.stdout);
    let (prompt, manifest) = talk.prompt(&["--to", "openai"]);
    let added: Vec<&Value> = manifest["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|entry| entry["state"] == "inserted" && entry["layer"] == "memory")
        .collect();
    assert_eq!(added.len(), 1, "{manifest}");
    assert!(added[0]["reason"].as_str().is_some_and(|why| why.starts_with("recalled: ")));
    // Without its archive the same session has nothing to recall.
    std::fs::remove_dir_all(talk.room.path("agents/main/memory")).expect("it is there");
    assert!(!talk.prompt(&[]).0.contains("Quillon"), "only the archive contained it");
    (prompt, manifest)
}

fn at(prompt: &str, what: &str) -> usize {
    prompt.find(what).unwrap_or_else(|| panic!("no {what} in {prompt}"))
}

#[test]
fn a_compacted_fact_is_recalled_right_before_the_question_for_it() {
    let (prompt, _) = recalls(json!({"enabled": true}), &[]);
    let block = at(&prompt, "<recalled-context");
    assert!(block < at(&prompt, FACT) && at(&prompt, FACT) < at(&prompt, QUESTION), "{prompt}");
    assert!(at(&prompt, "module 319") < block, "earlier messages are sent unchanged: {prompt}");
}

#[test]
fn the_memory_context_profile_puts_recalled_facts_after_the_summary() {
    let (prompt, _) = recalls(json!({}), &["--profile", "memory-context"]);
    let block = at(&prompt, "<recalled-context");
    assert!(block < at(&prompt, FACT) && at(&prompt, FACT) < at(&prompt, "module 319"), "{prompt}");
    assert!(at(&prompt, "module 319") < at(&prompt, QUESTION), "{prompt}");
}

#[test]
fn the_json_and_page_of_a_replay_show_recalled_and_trimmed_text() {
    // Without compaction, smart trim makes the request fit.
    let mut config = keeps_old(json!({}));
    config["agents"]["defaults"]["compaction"] = json!({"enabled": false});
    let room = room(&config);
    let mut lines = vec![pi_lines(0).remove(0)];
    lines.extend(long_talk(320).lines().skip(1).map(str::to_owned));
    lines.push(said(320, "user", QUESTION));
    lines.push(said(321, "assistant", "Quillon."));
    let file = room.write("talk.jsonl", crate::support::join(&lines));
    let page = room.path("page.html");
    let args = ["replay", text(&file), "--profile", "memory-context", "--window", "16k"];
    let report = room.json(&[&args[..], &["--html", text(&page)]].concat());
    let totals = &report["totals"];
    assert_eq!(totals["overflowsWith"], 0, "{totals}");
    assert!(totals["recalls"].as_u64() >= Some(1), "{totals}");
    assert!(totals["recalledTokens"].as_u64() > Some(0), "{totals}");
    let trimmed = totals["trimmedMessages"].as_u64();
    assert!(trimmed > Some(0), "{totals}");
    assert_eq!(report["layers"]["memory-trim"]["dropped"].as_u64(), trimmed, "{report}");
    let requests = report["requests"].as_array().expect("a list");
    let last = requests.last().expect("one");
    assert!(last["recalledTokens"].as_u64() > Some(0), "{last}");
    let sum = |key: &str| requests.iter().filter_map(|r| r[key].as_u64()).sum::<u64>();
    assert_eq!(Some(sum("recalledTokens")), totals["recalledTokens"].as_u64());
    assert_eq!(Some(sum("trimmedMessages")), trimmed);
    let asked = requests.iter().filter(|r| r["recalledTokens"].as_u64() > Some(0)).count();
    assert_eq!(Some(asked as u64), totals["recalls"].as_u64());

    let page = std::fs::read_to_string(&page).expect("it was written");
    for told in ["recalled: ", "has little to do with what is being asked", "recalledTokens"] {
        assert!(page.contains(told), "{told} is missing on the page");
    }
    let Ran { stdout, .. } = room.ctx(&args);
    assert!(stdout.contains("tokens recalled") && stdout.contains("messages trimmed"), "{stdout}");
}

/// Runs the binary with a file size limit of this number of blocks, which acts like a full disk.
#[cfg(unix)]
fn on_a_full_disk(room: &Room, blocks: u32, args: &[&str]) -> Ran {
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_ctx")]).args(args);
    Ran::of(command.env("CTX_HOME", room.path("")).env("NO_COLOR", "1"))
}

#[cfg(unix)]
#[test]
fn on_a_full_disk_requests_are_made_with_a_warning_and_nothing_stored_is_lost() {
    let room = room(&keeps_old(json!({"enabled": true, "search": {"hashWeight": 0.3}})));
    let early = room.write("early.jsonl", long_talk(12).replace("\"s1\"", "\"s0\""));
    let acknowledged = room.json(&["memory", "ingest", text(&early)])["segments"].clone();
    assert_eq!(acknowledged, 12);
    let file = room.write("talk.jsonl", long_talk(320));
    let archive = room.path("agents/main/memory/context/segments.jsonl");
    let written = std::fs::read(&archive).expect("it is there");

    let ran = on_a_full_disk(&room, 24, &["memory", "ingest", text(&file)]);
    assert_eq!(ran.code, Some(1), "it does not report success: {}", ran.stdout);
    assert!(ran.stderr.contains("cannot write to the archive"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: "), "{}", ran.stderr);
    let now = std::fs::read(&archive).expect("it is there");
    assert!(now.starts_with(&written), "acknowledged segments remain");
    for line in String::from_utf8_lossy(&now).lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }

    // A request is made anyway. It finds the stored messages, and reports the problem.
    let asking = room.write("asking.jsonl", asks_again().replace("\"s1\"", "\"s0\""));
    let args = ["assemble", text(&asking), "--window", "16k", "--json"];
    for limit in [24, 0] {
        let ran = on_a_full_disk(&room, limit, &args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let sent: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(sent["messages"].to_string().contains(QUESTION));
        let sent = sent["messages"].to_string();
        let block = sent.split("<recalled-context").nth(1);
        assert!(block.is_some_and(|block| block.contains("Quillon")), "it is recalled: {sent}");
    }

    // Once there is space again, nothing is missing.
    let done = room.json(&["memory", "ingest", text(&file)]);
    assert_eq!(done["segments"], 12 + 320, "{done}");
    let found = room.json(&["memory", "search", QUESTION, "--session", "s1"]);
    assert_eq!(found["hits"][0]["entry"], "00000004", "{found}");
}
