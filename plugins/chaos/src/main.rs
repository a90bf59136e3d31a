//! The engine as a process.

fn main() -> std::io::Result<()> {
    chaos::serve()
}
