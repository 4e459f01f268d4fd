mod fit;
