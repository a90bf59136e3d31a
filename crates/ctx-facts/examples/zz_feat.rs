use ctx_facts::*;
fn main(){ let w: Vec<f32>=include_str!("../src/statement/weights.txt").lines().filter_map(|l| l.split_once(' ')?.1.parse().ok()).collect();
 for l in std::io::stdin().lines(){ let l=l.unwrap(); let Some((o,n))=l.split_once(" | ") else {continue}; let (o,n)=(Statement::of(o),Statement::of(n)); let c=Comparison::of(&n,&o); let f=c.features(); let s:f32=f.iter().zip(&w).map(|((_,x),w)|x*w).sum();
 println!("{:5.2} {} {}",s,c.replaces(),l); println!("      {}",f.iter().zip(&w).filter(|((_,x),_)|*x!=0.0).map(|((n,x),w)|format!("{n}={x:.2}*{w}")).collect::<Vec<_>>().join(" ")); println!("      new {n:?}\n      old {o:?}"); } }
