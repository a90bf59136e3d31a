//! The tools, run as in a turn.

use std::sync::{Arc, Mutex};
#[cfg(unix)]
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Always gives the same answer, and records the questions.
struct Says(Result<(), String>, Arc<Mutex<Vec<ToolAction>>>);

#[async_trait]
impl Approver for Says {
    async fn ask(&self, action: ToolAction) -> Result<(), String> {
        self.1.lock().unwrap().push(action);
        self.0.clone()
    }
}

/// A folder, and tools that work in it.
struct Bench {
    room: TempDir,
    tools: Tools,
    asked: Arc<Mutex<Vec<ToolAction>>>,
}

impl Bench {
    fn new(permission: Result<(), String>) -> Self {
        let room = TempDir::new().unwrap();
        std::fs::create_dir(room.path().join("here")).unwrap();
        let asked = Arc::<Mutex<Vec<ToolAction>>>::default();
        let approver = Box::new(Says(permission, asked.clone()));
        let all = [Tool::Bash, Tool::Write, Tool::Read];
        let tools = Tools::new(&all, &room.path().join("here"), approver).unwrap();
        Self { room, tools, asked }
    }

    fn run(&self, name: &str, arguments: &Value) -> (String, bool) {
        on(async {
            let output = self.tools.run(&call(name, arguments)).await;
            let message = output.into_message(&call(name, arguments));
            let result = message.tool_results().next().unwrap();
            (result.plain_text().into_owned(), result.is_error)
        })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|action| action.words.clone()).collect()
    }
}

fn on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

fn call(name: &str, arguments: &Value) -> ToolCall {
    ToolCall::new("1", name, RawJson::from_text(arguments.to_string()))
}

#[test]
fn tools_have_a_fixed_order_and_json_schemas() {
    let bench = Bench::new(Ok(()));
    let names: Vec<_> = bench.tools.specs().iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, ["read", "write", "bash"]);
    for spec in bench.tools.specs() {
        let schema: Value = serde_json::from_str(spec.parameters.as_str()).unwrap();
        assert_eq!(schema["type"], "object", "{}", spec.name);
    }
    let none = Tools::new(&[], bench.tools.folder(), Box::new(NoUser)).unwrap();
    assert!(none.specs().is_empty());
}

#[test]
fn a_file_is_read_by_ranges_of_lines() {
    let bench = Bench::new(Err("no".into()));
    let lines: String = (1..=5_000).map(|n| format!("line {n}\n")).collect();
    std::fs::write(bench.tools.folder().join("big.txt"), &lines).unwrap();
    let (text, failed) = bench.run("read", &json!({"path": "big.txt"}));
    assert!(!failed && text.starts_with("line 1\n"));
    assert!(text.ends_with("line 2000\n[more follows: go on with \"offset\": 2001]"), "{text}");
    let (text, _) = bench.run("read", &json!({"path": "big.txt", "offset": 2001, "limit": 2}));
    assert_eq!(text, "line 2001\nline 2002\n[more follows: go on with \"offset\": 2003]");
    let (text, _) = bench.run("read", &json!({"path": "big.txt", "offset": 5000}));
    assert_eq!(text, "line 5000\n");
    let (text, failed) = bench.run("read", &json!({"path": "big.txt", "offset": 5001}));
    assert!(failed, "{text}");
    let (text, failed) = bench.run("read", &json!({"path": "big.txt", "offset": 6000}));
    assert!(failed && text.contains("no more than 5,000 lines"), "{text}");
    assert_eq!(bench.asked(), [""; 0], "reading inside the folder needs no permission");
}

#[test]
fn only_text_is_read() {
    let bench = Bench::new(Ok(()));
    std::fs::write(bench.tools.folder().join("zero"), [b'a', 0, b'b']).unwrap();
    std::fs::write(bench.tools.folder().join("empty"), "").unwrap();
    std::fs::write(bench.tools.folder().join("long"), "x".repeat(300 << 10)).unwrap();
    for path in ["zero", "missing", ".", "/dev/zero", ""] {
        let (text, failed) = bench.run("read", &json!({"path": path}));
        assert!(failed, "{path}: {text}");
    }
    assert_eq!(bench.run("read", &json!({"path": "empty"})).0, "(the file is empty)");
    let (text, failed) = bench.run("read", &json!({"path": "long"}));
    assert!(!failed && text.ends_with("[line 1 is cut; read the rest of it with bash]"));
    for arguments in [json!({}), json!({"path": 1}), json!({"path": "x", "offset": -1}), json!([])]
    {
        let (text, failed) = bench.run("read", &arguments);
        assert!(failed && text.contains("invalid arguments:"), "{arguments}: {text}");
    }
}

#[test]
fn access_outside_of_the_folder_needs_permission() {
    let bench = Bench::new(Ok(()));
    std::fs::write(bench.room.path().join("secret"), "outside\n").unwrap();
    let (text, failed) = bench.run("read", &json!({"path": "../secret"}));
    assert_eq!((text.as_str(), failed), ("outside\n", false));
    let asked = bench.asked.lock().unwrap().pop().unwrap();
    assert!(asked.is_outside && asked.words.ends_with("/secret"), "{asked:?}");

    let refusing = Bench::new(Err("denied by the user".into()));
    std::fs::write(refusing.room.path().join("secret"), "outside\n").unwrap();
    let (text, failed) = refusing.run("read", &json!({"path": "../secret"}));
    assert!(failed && text == "not done: denied by the user", "{text}");
    let alone = Tools::new(&[Tool::Read], refusing.tools.folder(), Box::new(NoUser)).unwrap();
    let output = on(alone.run(&call("read", &json!({"path": "../secret"}))));
    assert!(output.is_error, "refused, because no user can be asked");
}

#[test]
fn a_file_is_replaced_completely_and_only_with_permission() {
    let refusing = Bench::new(Err("denied by the user".into()));
    let (text, failed) = refusing.run("write", &json!({"path": "a/b.txt", "content": "x"}));
    assert!(failed && text.contains("denied by the user"));
    assert!(!refusing.tools.folder().join("a").exists(), "nothing was touched");

    let bench = Bench::new(Ok(()));
    let (text, failed) = bench.run("write", &json!({"path": "a/b.txt", "content": "one\ntwo\n"}));
    assert_eq!((text.as_str(), failed), ("wrote 2 lines to a/b.txt", false));
    let path = bench.tools.folder().join("a/b.txt");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    bench.run("write", &json!({"path": "a/b.txt", "content": "three"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "three");
    let asked = ["write a/b.txt (2 lines, 8 B)", "replace a/b.txt (1 line, 5 B; was 2 lines, 8 B)"];
    assert_eq!(bench.asked(), asked);
    let previews: Vec<_> =
        bench.asked.lock().unwrap().iter().map(|action| action.preview.clone()).collect();
    assert_eq!(previews[0], ["+one", "+two"]);
    let changed = ["-one", "-two", "+three"];
    assert!(
        changed.iter().all(|line| previews[1].iter().any(|shown| shown == line)),
        "{previews:?}"
    );
    let many: String = (0..500).map(|n| format!("{n}\n")).collect();
    bench.run("write", &json!({"path": "long.txt", "content": many}));
    let preview = bench.asked.lock().unwrap().last().unwrap().preview.clone();
    assert_eq!((preview.len(), preview.last().unwrap().as_str()), (41, "(460 more lines)"));
    let (text, failed) = bench.run("write", &json!({"path": "a", "content": "x"}));
    assert_eq!((text.as_str(), failed), ("a: this is a folder", true));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_neither_read_nor_written() {
    let bench = Bench::new(Ok(()));
    bench.run("bash", &json!({"command": "mkfifo pipe"}));
    let (text, failed) = bench.run("write", &json!({"path": "pipe", "content": "x"}));
    assert_eq!((text.as_str(), failed), ("pipe: not a file, but a device or a pipe", true));
    let (text, failed) = bench.run("read", &json!({"path": "pipe"}));
    assert!(failed && text.contains("a device or a pipe"), "{text}");
    let (text, _) = bench.run("read", &json!({"path": "."}));
    assert_eq!(text, ".: this is a folder; bash can list it");
}

#[test]
fn only_stored_results_may_be_read_from_their_folder() {
    let bench = Bench::new(Ok(()));
    let kept = bench.room.path().join("kept");
    let alone = Tools::new(&[Tool::Read, Tool::Write], bench.tools.folder(), Box::new(NoUser));
    let alone = alone.unwrap().with_results(&kept);
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("1.txt"), "whole\n").unwrap();
    std::fs::write(bench.room.path().join("secret"), "outside\n").unwrap();
    let path = kept.join("1.txt");
    let run = |name: &str, arguments: Value| on(alone.run(&call(name, &arguments)));
    assert!(!run("read", json!({"path": path})).is_error);
    assert!(run("read", json!({"path": kept.join("../secret")})).is_error);
    assert!(run("write", json!({"path": path, "content": "x"})).is_error);
}

#[cfg(unix)]
#[test]
fn a_long_output_states_its_exit_status_and_the_kept_size() {
    let bench = Bench::new(Ok(()));
    let run = |command: &str| bench.run("bash", &json!({"command": command})).0;
    assert!(run("seq 1 10000; echo ALLGOOD").ends_with("10000\nALLGOOD\n\n[exit code 0]"));
    let text = run("yes | head -c 1000000; echo; echo END");
    assert!(text.contains("\nEND\n\n[1000005 bytes were printed; 262144 of them"), "{text}");
    assert!(text.ends_with("\n[exit code 0]"));
}

#[cfg(unix)]
#[test]
fn a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(Ok(()));
    let path = bench.tools.folder().join("run.sh");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    bench.run("write", &json!({"path": "run.sh", "content": "new"}));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o750);
}

#[cfg(unix)]
#[test]
fn a_command_returns_its_output_and_its_exit_status() {
    let bench = Bench::new(Ok(()));
    let run = |command: &str| bench.run("bash", &json!({"command": command}));
    assert_eq!(run("echo one; echo two >&2; echo three"), ("one\ntwo\nthree\n".into(), false));
    assert_eq!(run("true"), ("(no output)".into(), false));
    let (text, failed) = run("echo wrong; exit 3");
    assert!(failed && text.starts_with("wrong\n[") && text.contains('3'), "{text}");
    assert_eq!(run("cat"), ("(no output)".into(), false), "standard input is empty");
    let (text, failed) = run("pwd");
    assert!(!failed && text.trim_end().ends_with("/here"), "{text}");
    assert!(run("if").1, "a syntax error fails");
    assert_eq!(bench.asked()[0], "run echo one; echo two >&2; echo three");
}

#[cfg(unix)]
#[test]
fn background_processes_end_with_their_command() {
    let bench = Bench::new(Ok(()));
    let pid = bench.tools.folder().join("pid");
    let command = "sleep 1000 & echo $! > pid; echo begun";
    assert_eq!(bench.run("bash", &json!({"command": command})).0, "begun\n");
    gone(&pid);
}

#[cfg(unix)]
#[test]
fn a_command_ends_at_its_time_limit_or_when_its_call_is_dropped() {
    let bench = Bench::new(Ok(()));
    let pid = bench.tools.folder().join("pid");
    let arguments = json!({"command": "echo $$ > pid; echo begun; sleep 1000", "timeout": 1});
    let (text, failed) = bench.run("bash", &arguments);
    assert!(failed && text == "begun\n[killed at the time limit of 1 second]", "{text}");
    gone(&pid);

    std::fs::remove_file(&pid).unwrap();
    let arguments = json!({"command": "echo $$ > tmp; mv tmp pid; sleep 1000"});
    on(async {
        let waiting = async {
            while !pid.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let call = call("bash", &arguments);
        tokio::select! {
            _ = bench.tools.run(&call) => panic!("it sleeps"),
            () = waiting => {}
        }
    });
    gone(&pid);
}

/// Waits until the process whose id is in a file has ended; it may remain as a zombie.
#[cfg(unix)]
fn gone(file: &Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_there = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    for _ in 0..3_000 {
        if !is_there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{stat} still exists");
}
