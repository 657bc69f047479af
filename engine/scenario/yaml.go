package scenario

import (
	"bufio"
	"bytes"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func newYAMLReader(data []byte) *utilyaml.YAMLReader {
	return utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
}
