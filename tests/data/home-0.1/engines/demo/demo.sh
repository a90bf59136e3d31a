#!/bin/sh
mode=good
while read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[!0-9]*}
  case $line in
    *'"verb":"hello"'*)
      case $line in
        *'"mode":"bad"'*) mode=bad ;;
        *'"mode":"once"'*) mode=once ;;
        *'"mode":"gone"'*) exit 3 ;;
        *'"mode":"store"'*) mode=store ;;
      esac
      ok='{"protocol":"1.0","id":"demo","name":"Demo","version":"0.1.0"}' ;;
    *'"verb":"assemble"'*)
      ok='{}'
      [ $mode = bad ] || [ $mode = once ] && ok='{"drop":["nobody"]}'
      [ $mode = once ] && mode=good
      if [ $mode = store ]; then
        echo '{"id":1,"host":"store.get","params":{"key":"../n"}}'
        read -r kept
        echo '{"id":2,"host":"store.put","params":{"key":"../n","value":"kept"}}'
        read -r done
        case $kept in
          *kept*) ok='{"systemPromptAddition":"I remember."}' ;;
        esac
      fi ;;
    *) ok='{}' ;;
  esac
  echo "{\"id\":$id,\"ok\":$ok}"
done
