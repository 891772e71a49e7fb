# bash completion of stillvec, made by: stillvec completion bash
_stillvec() {
    local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} before="" names="" files=""
    local prev=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        names="%(commands)s --help --version"
    elif [[ $cur == -* ]]; then
        case $verb in
%(options)s
        esac
    else
        case "$verb $prev" in
%(values)s
        *) files=yes
            case $verb in
%(alone)s
            esac ;;
        esac
    fi
    if [[ $before == list ]]; then
        before=""
        [[ $cur == *,* ]] && before=${cur%%,*},
    fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$names" -- "${cur#"$before"}")
    if [[ $files ]]; then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
    fi
}
complete -F _stillvec stillvec
